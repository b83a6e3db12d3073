import { readdirSync, readFileSync } from 'node:fs';
import type { SourceFormat } from '../../../src/contract/image-formats.ts';
import { verdictOn } from '../../formats/header-of.ts';
import { createSeededRandom, type SeededRandom } from '../../support/seeded-random.ts';
import { poster, smallWays, type Way } from '../ways.ts';
import { changeBytes, splice } from './byte-changes.ts';
import { type Part, type PartCodec, partCodecs, videoBoxes } from './part-codecs.ts';

/** Files that are mutated alike, each with parts of the others of `pool` in it. */
export interface MutatedKind {
  readonly name: string;
  readonly files: readonly Buffer[];
  readonly pool: readonly Buffer[];
  readonly codecs: readonly PartCodec[];
  readonly ways: readonly Way[];
}

/** Bounds of the images that are mutated: what is rendered ten thousand times has to be small. */
const MAX_BYTES = 20_000;
const MAX_PIXELS = 400_000;

/** The images of the fixtures that are small enough and whole, by their formats. */
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
    return { name, files, pool: files, codecs, ways: smallWays };
  });
}

/** Small videos of each container and codec; a kind each. */
export function readVideoKinds(): MutatedKind[] {
  const names = [
    ...['black-start.mp4', 'clip-fragmented.mp4', 'phone-portrait.mov'],
    ...['clip-vp8.webm', 'odd-vp9.webm', 'clip-av1.mkv'],
  ];
  const pool = names.map((name) => readFileSync(`fixtures/video/${name}`));
  const shared = { pool, codecs: [videoBoxes], ways: [poster] };
  return names.map((name, at) => ({ name, files: pool.slice(at, at + 1), ...shared }));
}

/** Makes of a file that was real once a mutation, the same one for the same seed and index, and what to ask of it. */
export function createMutation(seed: string, kind: MutatedKind, index: number) {
  const random = createSeededRandom(`${seed}:${kind.name}:${index}`);
  const [one, other] = [random.pick(kind.files), random.pick(kind.pool)];
  const way = random.pick(kind.ways);
  // Half of them keep lengths and checksums right, so that the decoders get to see them.
  const codec = random.integer(2) === 0 ? undefined : random.pick(kind.codecs);
  const inParts = codec && mutateParts(one, other, codec, random);
  return { bytes: inParts ?? mutateBytes(one, other, random), way };
}

function mutateBytes(one: Buffer, other: Buffer, random: SeededRandom): Buffer {
  let bytes = random.integer(20) === 0 ? splice(one, other, random) : one;
  for (let changes = random.pick([1, 1, 1, 2, 4, 16]); changes > 0; changes -= 1) {
    bytes = changeBytes(bytes, random);
  }
  return bytes;
}

/** Changes parts of a file; returns `undefined` for one that cannot be taken apart. */
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

/**
 * Changes a file's parts: one is changed, cut out, doubled, exchanged or renamed, at any depth.
 *
 * @param others parts of another file, of which one may be put in
 */
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
