import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { Random } from '../harness/random.ts';

const SAMPLES = 'fixtures/originals';
const CORPUS = 'fixtures/corpus';

/** Samples are there under their own ids and, so many times, under others. */
const COPIES = 4;

/** Ids of a copy are those of the sample and so much more. */
const COPY_DISTANCE = 1_000_000n;

/** Files that are served as they are, in numbers and bytes. */
const BLOBS = 16;
const SMALLEST_BLOB_BYTES = 300_000;
const LARGEST_BLOB_BYTES = 12_000_000;

/** Folders of the corpus whose files mean harm, or are damaged. */
const HOSTILE = /^(hostile|fuzz)-/;

/** One object of the bucket. */
export interface Original {
  readonly key: string;
  /** `still` and `animation` are images that are rendered well; `file` may be anything. */
  readonly kind: 'still' | 'animation' | 'file' | 'hostile';
  readonly sizeBytes: number;
  readonly read: () => Buffer;
}

/** Everything in the bucket. */
export interface Originals {
  readonly stills: readonly Original[];
  readonly animations: readonly Original[];
  readonly files: readonly Original[];
  readonly hostile: readonly Original[];
  /** The samples once more, under ids that no load asks for: for a proof at the end. */
  readonly reserved: readonly Original[];
}

/** Lists the originals, the same in every process; their bytes are read when they are wanted. */
export function listOriginals(): Originals {
  const samples = listFiles(SAMPLES).map((key) => {
    const sample = openFile(key, 'still', join(SAMPLES, key));
    return { ...sample, kind: tellKind(sample) };
  });
  const copies = Array.from({ length: COPIES }, (_, copy) =>
    samples.map((sample) => copyOf(sample, copy)),
  ).flat();
  const isKind =
    (kind: Original['kind']) =>
    (original: Original): boolean =>
      original.kind === kind;
  return {
    stills: copies.filter(isKind('still')),
    animations: copies.filter(isKind('animation')),
    files: [...copies.filter(isKind('file')), ...listBlobs()],
    hostile: listHostile(),
    reserved: samples.map((sample) => copyOf(sample, COPIES)),
  };
}

/** The key that a sample has in a copy. */
export function copyKey(key: string, copy: number): string {
  const distance = COPY_DISTANCE * BigInt(copy);
  return key.replace(/\d+/, (id) => String(BigInt(id) + distance));
}

/** The copy that is reserved. */
export const RESERVED_COPY = COPIES;

function copyOf(sample: Original, copy: number): Original {
  return { ...sample, key: copyKey(sample.key, copy) };
}

function openFile(key: string, kind: Original['kind'], file: string): Original {
  return { key, kind, sizeBytes: statSync(file).size, read: () => readFileSync(file) };
}

function tellKind(sample: Original): Original['kind'] {
  const facts = readImageFacts(sample.read());
  if (facts === undefined) return 'file';
  return facts.animation === undefined ? 'still' : 'animation';
}

function listHostile(): Original[] {
  const files = listFiles(CORPUS).filter((file) => HOSTILE.test(file));
  return files.flatMap((file, index) =>
    [`avatars/${9_000 + index}/hostile`, `attachments/9/${index}/hostile`].map((key) =>
      openFile(key, 'hostile', join(CORPUS, file)),
    ),
  );
}

function listBlobs(): Original[] {
  const random = new Random(BLOBS);
  return Array.from({ length: BLOBS }, (_, index) => {
    const sizeBytes = Math.round(random.spread(SMALLEST_BLOB_BYTES, LARGEST_BLOB_BYTES));
    // Of a length that fits no buffer size, so that a piece in a wrong place is seen.
    const pattern = Buffer.from(Array.from({ length: 65_537 }, () => random.integer(0, 255)));
    return {
      key: `attachments/8/${index}/recording-${index}.bin`,
      kind: 'file',
      sizeBytes,
      read: () => Buffer.alloc(sizeBytes, pattern),
    };
  });
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}
