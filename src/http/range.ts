/** Byte ranges (RFC 9110 §14): a single range selects a part, any other header the complete body. */

import type { ByteRange } from '../pipeline/ports.ts';

/** Requested range: 200 (`full`), 416 (`unsatisfiable`), or a 206 with these bytes, both inclusive. */
type RequestedRange = 'full' | 'unsatisfiable' | { readonly first: number; readonly last: number };

// `1#range-spec` with one element; empty elements and white space are ignored (RFC 9110 §5.6.1.2). No two adjacent parts
// match the same character, so it runs in linear time.
const SINGLE_RANGE = /^bytes=(?:(?:[ \t]*,)+[ \t]*)?(\d*)-(\d*)(?:(?:[ \t]*,)+[ \t]*)?$/i;

/**
 * Parses the `Range` header of a GET of a body of `sizeBytes` (RFC 9110 §14.1, §14.2).
 *
 * Ignores several ranges, other units, `first > last` and malformed headers (`full`), as §14.2 allows and contract §4
 * demands. `unsatisfiable` are a first byte at or past the end, and the suffix `-0`. A suffix of an empty body is `full`,
 * since Content-Range cannot express an empty range.
 */
export function parseRange(header: string | undefined, sizeBytes: number): RequestedRange {
  const match = header === undefined ? null : SINGLE_RANGE.exec(header);
  const [, firstDigits = '', lastDigits = ''] = match ?? [];
  if (firstDigits === '') {
    return lastDigits === '' ? 'full' : suffixRange(Number(lastDigits), sizeBytes);
  }
  // BigInt, since beyond 2^53 different numbers round to the same double.
  if (lastDigits !== '' && BigInt(firstDigits) > BigInt(lastDigits)) return 'full';

  const first = Number(firstDigits);
  if (first >= sizeBytes) return 'unsatisfiable';
  const last = lastDigits === '' ? sizeBytes - 1 : Math.min(Number(lastDigits), sizeBytes - 1);
  return { first, last };
}

/** Parses a range from the first byte, for a body of unknown length; returns `undefined` for other ranges. */
export function parseBeginning(header: string | undefined): ByteRange | undefined {
  const [, digits] = /^bytes=0-(\d{0,15})$/i.exec(header ?? '') ?? [];
  if (digits === undefined) return undefined;
  return { first: 0, last: digits === '' ? undefined : Number(digits) };
}

function suffixRange(lengthBytes: number, sizeBytes: number): RequestedRange {
  if (lengthBytes === 0) return 'unsatisfiable';
  if (sizeBytes === 0) return 'full';
  return { first: Math.max(0, sizeBytes - lengthBytes), last: sizeBytes - 1 };
}

/** Formats `Content-Range` (RFC 9110 §14.4): `bytes 0-4/10` for a 206; for a 416, the range is an asterisk. */
export function formatContentRange(
  range: Exclude<RequestedRange, 'full'>,
  sizeBytes: number,
): string {
  const sent = range === 'unsatisfiable' ? '*' : `${range.first}-${range.last}`;
  return `bytes ${sent}/${sizeBytes}`;
}
