import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { Random } from '../harness/random.ts';

const SAMPLES = 'fixtures/originals';
const CORPUS = 'fixtures/corpus';

/** Samples are there under their own ids and, so many times, under others. */
const COPIES = 4;

/** The copy that no load asks for. */
export const RESERVED_COPY = COPIES;

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
export type Originals = ReturnType<typeof listOriginals>;

/** Lists the originals; their bytes are read when they are wanted. */
export function listOriginals() {
  const samples = listFiles(SAMPLES).map((file): Original => {
    const facts = readImageFacts(readFileSync(file));
    const kind = facts?.animation === undefined ? 'still' : 'animation';
    return openFile(relative(SAMPLES, file), facts === undefined ? 'file' : kind, file);
  });
  const copyAll = (copy: number): Original[] =>
    samples.map((sample) => ({ ...sample, key: copyKey(sample.key, copy) }));
  const copies = Array.from({ length: COPIES }, (_, copy) => copyAll(copy)).flat();
  const ofKind = (wanted: Original['kind']) => copies.filter(({ kind }) => kind === wanted);
  return {
    stills: ofKind('still'),
    animations: ofKind('animation'),
    files: [...ofKind('file'), ...listBlobs()],
    hostile: listFiles(CORPUS)
      .filter((file) => HOSTILE.test(relative(CORPUS, file)))
      .flatMap((file, index) => [
        openFile(`avatars/${9_000 + index}/hostile`, 'hostile', file),
        openFile(`attachments/9/${index}/hostile`, 'hostile', file),
      ]),
    /** The samples once more, under ids that no load asks for: for a proof at the end. */
    reserved: copyAll(RESERVED_COPY),
  };
}

/** The key that a sample has in a copy. */
export function copyKey(key: string, copy: number): string {
  const distance = COPY_DISTANCE * BigInt(copy);
  return key.replace(/\d+/, (id) => String(BigInt(id) + distance));
}

/** Whether transforms are asked for by parameters, and not by extension. */
export function isAttachment({ key }: Original): boolean {
  return key.startsWith('attachments/');
}

function openFile(key: string, kind: Original['kind'], file: string): Original {
  return { key, kind, sizeBytes: statSync(file).size, read: () => readFileSync(file) };
}

/** Files of random bytes, in a pattern whose length fits no buffer: a piece in a wrong place is seen. */
function listBlobs(): Original[] {
  const random = new Random(BLOBS);
  return Array.from({ length: BLOBS }, (_, index) => {
    const sizeBytes = Math.round(random.spread(SMALLEST_BLOB_BYTES, LARGEST_BLOB_BYTES));
    const pattern = Buffer.from(Array.from({ length: 65_537 }, () => random.integer(0, 255)));
    const read = () => Buffer.alloc(sizeBytes, pattern);
    return { key: `attachments/8/${index}/recording-${index}.bin`, kind: 'file', sizeBytes, read };
  });
}

export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
