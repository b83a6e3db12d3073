import { MediaError } from '../contract/errors.ts';
import type { ByteRange } from '../pipeline/ports.ts';

/**
 * The bytes of an object that a range covers, cut at the object's end.
 *
 * @returns first and last byte, both included; of an empty object `last` is −1
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

/**
 * What a `Content-Range` says (RFC 9110 §14.4), where it is the very part that was asked for; else `undefined`.
 *
 * @param lengthBytes of the body, where it is known
 */
export function readContentRange(
  text: string,
  range: ByteRange,
  lengthBytes: number | undefined,
): { readonly first: number; readonly last: number; readonly sizeBytes: number } | undefined {
  const [, first, last, sizeBytes] =
    /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/i.exec(text)?.map(Number) ?? [];
  const isAskedFor =
    sizeBytes !== undefined &&
    first === range.first &&
    last === Math.min(range.last ?? Infinity, sizeBytes - 1) &&
    (lengthBytes ?? last - first + 1) === last - first + 1;
  return isAskedFor ? { first, last, sizeBytes } : undefined;
}

/**
 * The time of an original's last change, as a response may have it; `undefined` for one in the future, which must not
 * be (RFC 9110 §8.8.2.1), and for one before 1970, which no storage means.
 */
export function readLastModified(date: Date | undefined): Date | undefined {
  const timeMs = date?.getTime() ?? Number.NaN;
  return timeMs >= 0 && timeMs <= Date.now() ? date : undefined;
}
