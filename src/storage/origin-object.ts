import { MediaError } from '../contract/errors.ts';
import type { ByteRange, Opened } from '../pipeline/ports.ts';

/**
 * Returns the first and last byte of a range within an object; `last` is −1 if the object is empty.
 * @throws MediaError `RANGE_NOT_SATISFIABLE` if the range begins at or after the end
 */
export function clampRange(
  range: ByteRange | undefined,
  sizeBytes: number,
): { readonly first: number; readonly last: number } {
  if (range === undefined) return { first: 0, last: sizeBytes - 1 };
  if (range.first >= sizeBytes) throw new MediaError('RANGE_NOT_SATISFIABLE');
  return { first: range.first, last: Math.min(range.last ?? Infinity, sizeBytes - 1) };
}

/** Opens bytes in memory as an original. @throws MediaError as `clampRange` */
export function openBytes(bytes: Uint8Array, etag: string, range: ByteRange | undefined): Opened {
  const { first, last } = clampRange(range, bytes.length);
  return {
    body: bytes.subarray(first, last + 1),
    part: range && { first, last },
    sizeBytes: bytes.length,
    etag,
    lastModified: undefined,
  };
}

/** Parses a `Content-Range` (RFC 9110 §14.4); returns `undefined` unless it is exactly the requested range. */
export function readContentRange(
  text: string,
  range: ByteRange,
  lengthBytes: number | undefined,
): { readonly first: number; readonly last: number; readonly sizeBytes: number } | undefined {
  const [, first, last, sizeBytes] =
    /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/i.exec(text)?.map(Number) ?? [];
  const isRequested =
    sizeBytes !== undefined &&
    first === range.first &&
    last === Math.min(range.last ?? Infinity, sizeBytes - 1) &&
    (lengthBytes ?? last - first + 1) === last - first + 1;
  return isRequested ? { first, last, sizeBytes } : undefined;
}

/** Returns the modification time; `undefined` if it is in the future (RFC 9110 §8.8.2.1), or before 1970. */
export function readLastModified(date: Date | undefined): Date | undefined {
  const timeMs = date?.getTime() ?? Number.NaN;
  return timeMs >= 0 && timeMs <= Date.now() ? date : undefined;
}
