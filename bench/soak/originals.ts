import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readImageHeader } from '../../src/formats/containers.ts';
import { readFixtures } from '../harness/fixtures.ts';
import { Random } from '../harness/random.ts';

/** Copies of the samples, each with its own ids; the load does not request the last copy. */
const COPIES = 5;
export const RESERVED_COPY = COPIES - 1;
const COPY_DISTANCE = 1_000_000n;

/** Files that are served unchanged. */
const BLOBS = 16;
const SMALLEST_BLOB_BYTES = 300_000;
const LARGEST_BLOB_BYTES = 12_000_000;

/** Directories of the corpus whose files are malicious or damaged. */
const HOSTILE = /^(hostile|fuzz)-/;

export interface Original {
  readonly key: string;
  /** `still` and `animation` are valid images; `file` is any other content. */
  readonly kind: 'still' | 'animation' | 'file' | 'hostile';
  readonly bytes: Buffer;
}

/** Reads or creates all originals; the load does not request those in `reserved`. */
export function createOriginals() {
  const samples = readFixtures('originals').map(({ key, bytes }): Original => {
    const header = readImageHeader(bytes);
    const kind = header?.animation === undefined ? 'still' : 'animation';
    return { key, kind: header === undefined ? 'file' : kind, bytes };
  });
  const copies = Array.from({ length: COPIES }, (_, copy) =>
    samples.map((sample) => ({ ...sample, key: copyKey(sample.key, copy) })),
  );
  const reserved = copies.pop() ?? [];
  const ofKind = (wanted: Original['kind']) => copies.flat().filter(({ kind }) => kind === wanted);
  const hostile = readFixtures('corpus')
    .filter(({ key }) => HOSTILE.test(key))
    .flatMap(({ bytes }, index): Original[] => [
      { kind: 'hostile', bytes, key: `avatars/${9_000 + index}/hostile` },
      { kind: 'hostile', bytes, key: `attachments/9/${index}/hostile` },
    ]);
  return {
    stills: ofKind('still'),
    animations: ofKind('animation'),
    files: [...ofKind('file'), ...createBlobs()],
    hostile,
    reserved,
  };
}

export function writeOriginals(directory: string, originals: readonly Original[]): void {
  for (const { key, bytes } of originals) {
    mkdirSync(dirname(join(directory, key)), { recursive: true });
    writeFileSync(join(directory, key), bytes);
  }
}

/** Returns the key of a sample in a copy. */
export function copyKey(key: string, copy: number): string {
  const distance = COPY_DISTANCE * BigInt(copy);
  return key.replace(/\d+/, (id) => String(BigInt(id) + distance));
}

/** Creates files that repeat a random pattern. No buffer size divides its length, so that misplaced pieces show. */
function createBlobs(): Original[] {
  const random = new Random(BLOBS);
  return Array.from({ length: BLOBS }, (_, index) => {
    const sizeBytes = Math.round(random.spread(SMALLEST_BLOB_BYTES, LARGEST_BLOB_BYTES));
    const pattern = Buffer.from(Array.from({ length: 65_537 }, () => random.integer(0, 255)));
    const key = `attachments/8/${index}/recording-${index}.bin`;
    return { key, kind: 'file', bytes: Buffer.alloc(sizeBytes, pattern) };
  });
}
