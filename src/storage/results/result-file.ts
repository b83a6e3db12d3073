import { crc32 } from 'node:zlib';
import { outputFormats } from '../../contract/image-formats.ts';
import { type ResultAddress, resultPath } from '../../contract/result-key.ts';
import type { StoredResult } from '../../pipeline/ports.ts';

/**
 * Format of a rendering in a store, as a file or an object. Numbers are unsigned, big-endian:
 *
 * | offset | bytes |                                                    |
 * | -----: | ----: | -------------------------------------------------- |
 * |      0 |     4 | `DKR1`: magic bytes and version                    |
 * |      4 |     4 | CRC-32 (IEEE 802.3) of all bytes after it          |
 * |      8 |     4 | length of the head                                 |
 * |     12 |     4 | length of the body                                 |
 * |     16 |       | head: the address and the MIME type, JSON in UTF-8 |
 * |        |       | body: the encoded image                            |
 *
 * The head repeats the complete address, since a file name has only 64 bits of it and operators rename files. The
 * checksum detects disk errors, not tampering: a process that can write to the store controls what is served from it.
 */
const MAGIC = Buffer.from('DKR1', 'latin1');

const STORED_TYPES: ReadonlySet<string> = new Set([
  ...Object.values(outputFormats).map(({ mimeType }) => mimeType),
  'application/json', // metadata
  'text/plain', // digests
]);

const PREAMBLE_BYTES = 16;
/** Bytes without checksum: the magic bytes and the checksum itself. */
const UNSUMMED_BYTES = 8;

/** A key of 400 bytes, each up to six in JSON, a request, and an entity tag of 16 KiB. */
const MAX_HEAD_BYTES = 32 * 1024;

/** Larger results are rendered again, so that reading them does not delay other requests. */
const MAX_BODY_BYTES = 32 * 1024 ** 2;

export const MAX_RESULT_FILE_BYTES = PREAMBLE_BYTES + MAX_HEAD_BYTES + MAX_BODY_BYTES;

export const HOUR_MS = 60 * 60 * 1000;

/** Allocation unit of file systems: the disk space of the smallest file. */
const BLOCK_BYTES = 4096;

/** Disk space of a directory; very many entries take more. */
export const DIRECTORY_COST_BYTES = BLOCK_BYTES;

/** Returns the disk space of a file; computed, because ZFS and btrfs report it much later. */
export function fileCostBytes(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / BLOCK_BYTES)) * BLOCK_BYTES;
}

/** Returns the bytes before the body, and the body; `undefined` if the result is too large to be read again. */
export function formatResultFile(
  address: ResultAddress,
  { body, mimeType }: StoredResult,
): readonly [before: Buffer, body: Uint8Array] | undefined {
  const head = Buffer.from(JSON.stringify([...fieldsOf(address), mimeType]));
  if (head.length > MAX_HEAD_BYTES || body.length > MAX_BODY_BYTES) return undefined;
  const before = Buffer.concat([MAGIC, Buffer.alloc(PREAMBLE_BYTES - MAGIC.length), head]);
  before.writeUInt32BE(head.length, 8);
  before.writeUInt32BE(body.length, 12);
  before.writeUInt32BE(crc32(body, crc32(before.subarray(UNSUMMED_BYTES))), 4);
  return [before, body];
}

/** Returns `undefined` unless the file is an intact rendering of this address; otherwise a view of its bytes. */
export function parseResultFile(file: Buffer, address: ResultAddress): StoredResult | undefined {
  if (file.length < PREAMBLE_BYTES || !file.subarray(0, MAGIC.length).equals(MAGIC)) {
    return undefined;
  }
  const headBytes = file.readUInt32BE(8);
  const bodyBytes = file.readUInt32BE(12);
  const bodyStart = PREAMBLE_BYTES + headBytes;
  if (headBytes > MAX_HEAD_BYTES || file.length !== bodyStart + bodyBytes) return undefined;
  if (crc32(file.subarray(UNSUMMED_BYTES)) !== file.readUInt32BE(4)) return undefined;
  const head = parseHead(file.toString('utf8', PREAMBLE_BYTES, bodyStart));
  const expected = fieldsOf(address);
  const mimeType = head?.[expected.length];
  if (mimeType === undefined || !STORED_TYPES.has(mimeType)) return undefined;
  if (!expected.every((field, at) => field === head?.[at])) return undefined;
  return { body: file.subarray(bodyStart), mimeType };
}

/** Returns the fields in the order of the head. A change requires a new version in `MAGIC`. */
function fieldsOf({
  originKey,
  cacheKey,
  originalEtag,
  release,
}: ResultAddress): readonly string[] {
  return [originKey, cacheKey, originalEtag, release];
}

function parseHead(json: string): readonly string[] | undefined {
  try {
    const head: unknown = JSON.parse(json);
    const isHead = Array.isArray(head) && head.every((field) => typeof field === 'string');
    return isHead ? head : undefined;
  } catch {
    return undefined;
  }
}

/** @throws Error for a path that is not normalized */
export function storedPathOf(address: ResultAddress): string {
  const path = resultPath(address);
  if (!path.split('/').every(isName)) throw new Error(`${path} is not a path of a rendering.`);
  return path;
}

/** @throws Error unless a prefix is normalized; the last segment may be partial: `a/.` of `a/.htaccess/…` */
export function checkPathPrefix(prefix: string): void {
  const segments = prefix.split('/');
  const last = segments.pop();
  if (prefix === '' || !segments.every(isName) || last === '..' || last?.includes('\0')) {
    throw new Error(`Expected a path prefix for a removal but received "${prefix}".`);
  }
}

function isName(segment: string): boolean {
  return segment !== '' && segment !== '.' && segment !== '..' && !segment.includes('\0');
}
