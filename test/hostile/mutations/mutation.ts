import { readdirSync, readFileSync } from 'node:fs';
import type { SourceFormat } from '../../../src/contract/image-formats.ts';
import { verdictOn } from '../../formats/facts-of.ts';
import { createSeededRandom, type SeededRandom } from '../../support/seeded-random.ts';
import { smallWays, type Way } from '../ways.ts';
import { changeBytes, splice } from './byte-changes.ts';
import { changeParts } from './part-changes.ts';
import { type Part, type PartCodec, partCodecs } from './part-codecs.ts';

/** A file that was real once, and what to ask of it. */
export interface Mutation {
  readonly bytes: Buffer;
  readonly way: Way;
}

/** Bounds of the files that are mutated: what is rendered ten thousand times has to be small. */
const MAX_BYTES = 20_000;
const MAX_PIXELS = 400_000;

/** The files of the fixtures that are small enough and whole, by their formats. */
function readOriginals(): ReadonlyMap<SourceFormat, readonly Buffer[]> {
  const originals = new Map<SourceFormat, Buffer[]>();
  for (const folder of ['corpus', 'originals', 'golden-originals', 'heic', 'avifenc']) {
    const root = new URL(`../../../fixtures/${folder}/`, import.meta.url);
    const entries = readdirSync(root, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    for (const file of files.map(({ parentPath, name }) => `${parentPath}/${name}`).sort()) {
      const bytes = readFileSync(file);
      const facts = bytes.length <= MAX_BYTES ? verdictOn(bytes) : 'corrupt';
      if (typeof facts === 'string') continue;
      if (facts.widthPx * facts.heightPx * facts.frames > MAX_PIXELS) continue;
      originals.set(facts.format, [...(originals.get(facts.format) ?? []), bytes]);
    }
  }
  return originals;
}

/** Makes mutations of the small files of the fixtures, the same ones for the same seed. */
export class Mutator {
  readonly #seed: string;
  readonly #originals = readOriginals();

  constructor(seed: string) {
    this.#seed = seed;
  }

  /** How many files of a format there are to be mutated. */
  countOriginals(format: SourceFormat): number {
    return this.#filesOf(format).length;
  }

  create(format: SourceFormat, index: number): Mutation {
    const random = createSeededRandom(`${this.#seed}:${format}:${index}`);
    const files = this.#filesOf(format);
    const [one, other] = [random.pick(files), random.pick(files)];
    const way = random.pick(smallWays);
    // Half of them keep lengths and checksums right, so that the decoders get to see them.
    const codec = random.integer(2) === 0 ? undefined : random.pick(partCodecs[format]);
    const inParts = codec && mutateParts(one, other, codec, random);
    return { bytes: inParts ?? mutateBytes(one, other, random), way };
  }

  #filesOf(format: SourceFormat): readonly Buffer[] {
    return this.#originals.get(format) ?? [];
  }
}

/** Changes bytes wherever they stand. */
export function mutateBytes(one: Buffer, other: Buffer, random: SeededRandom): Buffer {
  let bytes = random.integer(20) === 0 ? splice(one, other, random) : one;
  for (let changes = random.pick([1, 1, 1, 2, 4, 16]); changes > 0; changes -= 1) {
    bytes = changeBytes(bytes, random);
  }
  return bytes;
}

/** Changes parts of a file; returns `undefined` for one that cannot be taken apart. */
export function mutateParts(
  one: Buffer,
  other: Buffer,
  codec: PartCodec,
  random: SeededRandom,
): Buffer | undefined {
  const parts = parse(codec, one);
  if (parts === undefined) return undefined;
  let changed = parts;
  for (let changes = random.pick([1, 1, 1, 2, 4]); changes > 0; changes -= 1) {
    changed = changeParts(changed, parse(codec, other) ?? [], random);
  }
  return codec.format(changed);
}

function parse({ parse }: PartCodec, file: Buffer): Part[] | undefined {
  try {
    return parse(file);
  } catch {
    return undefined;
  }
}
