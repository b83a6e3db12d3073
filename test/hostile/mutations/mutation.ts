import { readdirSync, readFileSync } from 'node:fs';
import type { SourceFormat } from '../../../src/contract/image-formats.ts';
import { verdictOn } from '../../formats/header-of.ts';
import { createSeededRandom, type SeededRandom } from '../../support/seeded-random.ts';
import { type MakeTarget, poster, smallTargets } from '../targets.ts';
import { changeBytes, splice } from './byte-changes.ts';
import { type Part, type PartCodec, partCodecs, videoBoxes } from './part-codecs.ts';

/** Files that are mutated in the same way, with parts of other files in `pool`. */
export interface MutatedKind {
  readonly name: string;
  readonly files: readonly Buffer[];
  readonly pool: readonly Buffer[];
  readonly codecs: readonly PartCodec[];
  readonly targets: readonly MakeTarget[];
}

/** Maximum size of mutated images, since each is rendered thousands of times. */
const MAX_BYTES = 20_000;
const MAX_PIXELS = 400_000;

/** Valid fixtures that are small enough, by format. */
export function readImageKinds(): MutatedKind[] {
  const originals = new Map<SourceFormat, Buffer[]>();
  for (const directory of ['corpus', 'originals', 'golden-originals', 'heic', 'avifenc']) {
    const root = new URL(`../../../fixtures/${directory}/`, import.meta.url);
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
  const formats = Object.entries(partCodecs) as [SourceFormat, readonly PartCodec[]][];
  return formats.map(([name, codecs]) => {
    const files = originals.get(name) ?? [];
    return { name, files, pool: files, codecs, targets: smallTargets };
  });
}

/** One small video of each container and codec. */
export function readVideoKinds(): MutatedKind[] {
  const names = [
    ...['black-start.mp4', 'clip-fragmented.mp4', 'phone-portrait.mov'],
    ...['clip-vp8.webm', 'odd-vp9.webm', 'clip-av1.mkv'],
  ];
  const pool = names.map((name) => readFileSync(`fixtures/video/${name}`));
  const shared = { pool, codecs: [videoBoxes], targets: [poster] };
  return names.map((name, at) => ({ name, files: pool.slice(at, at + 1), ...shared }));
}

/** Creates a mutation of a real file, and its request; both depend only on seed and index. */
export function createMutation(seed: string, kind: MutatedKind, index: number) {
  const random = createSeededRandom(`${seed}:${kind.name}:${index}`);
  const [one, other] = [random.pick(kind.files), random.pick(kind.pool)];
  const makeTarget = random.pick(kind.targets);
  // Half of the mutations keep valid lengths and checksums, so they reach the decoders.
  const codec = random.integer(2) === 0 ? undefined : random.pick(kind.codecs);
  const inParts = codec && mutateParts(one, other, codec, random);
  return { bytes: inParts ?? mutateBytes(one, other, random), makeTarget };
}

function mutateBytes(one: Buffer, other: Buffer, random: SeededRandom): Buffer {
  let bytes = random.integer(20) === 0 ? splice(one, other, random) : one;
  for (let changes = random.pick([1, 1, 1, 2, 4, 16]); changes > 0; changes -= 1) {
    bytes = changeBytes(bytes, random);
  }
  return bytes;
}

/** Changes parts of a file; returns `undefined` if it cannot be parsed. */
function mutateParts(
  one: Buffer,
  other: Buffer,
  codec: PartCodec,
  random: SeededRandom,
): Buffer | undefined {
  const parts = parse(codec, one);
  if (parts === undefined) return undefined;
  const others = parse(codec, other) ?? [];
  let changed = parts;
  for (let changes = random.pick([1, 1, 1, 2, 4]); changes > 0; changes -= 1) {
    changed = changeParts(changed, others, random);
  }
  return codec.format(changed);
}

/** Changes, removes, duplicates, exchanges or renames one part at any depth, or inserts one of another file. */
function changeParts(
  parts: readonly Part[],
  others: readonly Part[],
  random: SeededRandom,
): Part[] {
  if (parts.length === 0) return [...others];
  const [index, part] = random.pick([...parts.entries()]);
  if (part.children !== undefined && part.children.length > 0 && random.integer(4) > 0) {
    const children = changeParts(part.children, others, random);
    return parts.with(index, { ...part, children });
  }
  switch (random.integer(12)) {
    case 0:
      return parts.toSpliced(index, 1);
    case 1:
      return parts.toSpliced(index, 0, ...Array(random.pick([1, 1, 2, 10, 300])).fill(part));
    case 2:
      return parts.toSpliced(index, 0, random.pick(others.length > 0 ? others : parts));
    case 3: {
      const [otherIndex, other] = random.pick([...parts.entries()]);
      return parts.with(index, other).with(otherIndex, part);
    }
    case 4:
      return parts.with(index, { ...part, tag: random.pick([...parts, ...others]).tag });
    default:
      return parts.with(index, { ...part, data: changeBytes(part.data, random) });
  }
}

function parse({ parse }: PartCodec, file: Buffer): Part[] | undefined {
  try {
    return parse(file);
  } catch {
    return undefined;
  }
}
