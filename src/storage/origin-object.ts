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
 * The time of an original's last change, as a response may have it; `undefined` for one in the future, which must not
 * be (RFC 9110 §8.8.2.1), and for one before 1970, which no storage means.
 */
export function readLastModified(date: Date | undefined): Date | undefined {
  const timeMs = date?.getTime() ?? Number.NaN;
  return timeMs >= 0 && timeMs <= Date.now() ? date : undefined;
}
