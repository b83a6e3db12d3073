import type { ByteRange, Opened } from '../../pipeline/ports.ts';
import { siteError } from '../../pipeline/site-failure.ts';
import { readContentRange } from '../origin-object.ts';

export interface FreshnessBounds {
  readonly minAgeSeconds: number;
  readonly maxAgeSeconds: number;
}

/** Headers by lower-case name; repeated ones have several values. */
export type ResponseFields = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface ResponseHead {
  readonly status: number;
  readonly fields: ResponseFields;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Maximum length of a validator in characters; usual ones have some dozens. */
const MAX_VALIDATOR_LENGTH = 256;

// RFC 9110 §8.8.3; `etagc` excludes quotes and control characters.
const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

export function readRedirect({ status, fields }: ResponseHead, host: string): string | undefined {
  if (!REDIRECTS.has(status)) return undefined;
  const { location } = fields;
  if (typeof location === 'string' && location.trim() !== '') return decode(location.trim());
  throw siteError('The redirect has no target.', { reason: 'redirect', host });
}

/** @throws MediaError `ORIGIN_ERROR` unless the response is a 200, or a 206 with exactly the requested part */
export function readFraming(
  { status, fields }: ResponseHead,
  range: ByteRange | undefined,
  host: string,
): Pick<Opened, 'part' | 'sizeBytes'> {
  const refuse = (message: string): Error => siteError(message, { reason: 'response', host });
  if (status !== 200 && status !== 206) throw refuse(`The status is ${status}.`);
  const encoding = textOf(fields['content-encoding']).toLowerCase();
  // `identity` is invalid here (RFC 9110 §8.4.1), but harmless.
  if (encoding !== '' && encoding !== 'identity') {
    throw refuse(`The response has an unrequested encoding: ${encoding.slice(0, 40)}`);
  }
  const transfer = textOf(fields['transfer-encoding']).toLowerCase();
  if (transfer !== '' && transfer !== 'chunked') throw refuse(`Unknown transfer: ${transfer}.`);
  const length = readLength(fields);
  if (status === 200) return { part: undefined, sizeBytes: length };
  const requested = range && readContentRange(textOf(fields['content-range']), range, length);
  if (requested === undefined) throw refuse('The response has an unrequested range.');
  const { sizeBytes, ...part } = requested;
  return { part, sizeBytes };
}

/** Returns `undefined` for a missing, malformed or long tag. */
export function readEntityTag(fields: ResponseFields): string | undefined {
  const tag = textOf(fields.etag);
  return tag.length <= MAX_VALIDATOR_LENGTH && ENTITY_TAG.test(tag) ? tag : undefined;
}

export function readLastModifiedText(fields: ResponseFields): string | undefined {
  const text = textOf(fields['last-modified']);
  const isDate = text.length <= MAX_VALIDATOR_LENGTH && !Number.isNaN(Date.parse(text));
  return isDate ? text : undefined;
}

/** Returns the validator for ranges: a strong tag, or a date at least a second old (RFC 9110 §8.8.2.2, §13.1.5). */
export function readRangeValidator(fields: ResponseFields): string | undefined {
  const etag = readEntityTag(fields);
  if (etag?.startsWith('"')) return etag;
  const lastModified = readLastModifiedText(fields);
  const date = readDate(fields.date);
  const isStrong = lastModified !== undefined && date !== undefined;
  return isStrong && date - Date.parse(lastModified) >= 1000 ? lastModified : undefined;
}

// A directive with its argument, which may be quoted (RFC 9111 §5.2).
const DIRECTIVE = /([!#$%&'*+.^_`|~\w-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*)))?/g;

/**
 * Returns the freshness of a response in milliseconds: `s-maxage`, `max-age` or `Expires`, in this order (RFC 9111
 * §4.2.1), minus `Age`, clamped to the bounds, even if the headers forbid caching.
 *
 * @param nowMs milliseconds since 1970, for responses without `Date`
 */
export function readFreshness(
  fields: ResponseFields,
  { minAgeSeconds, maxAgeSeconds }: FreshnessBounds,
  nowMs: number,
): number {
  const age = typeof fields.age === 'string' ? (readSeconds(fields.age.trim()) ?? 0) : 0;
  const seconds = readLifetime(fields, nowMs) - age;
  return Math.max(minAgeSeconds, Math.min(seconds, maxAgeSeconds)) * 1000;
}

function readLifetime(fields: ResponseFields, nowMs: number): number {
  const directives = readDirectives(fields['cache-control']);
  if (['no-store', 'no-cache', 'private'].some((name) => directives.has(name))) return 0;
  for (const name of ['s-maxage', 'max-age']) {
    const text = directives.get(name);
    // With an invalid number, the response is stale (RFC 9111 §4.2.1).
    if (text !== undefined) return readSeconds(text) ?? 0;
  }
  const expires = readDate(fields.expires);
  const date = readDate(fields.date) ?? nowMs;
  return expires === undefined ? 0 : (expires - date) / 1000;
}

/** The first of equal names counts. */
function readDirectives(field: ResponseFields[string]): ReadonlyMap<string, string> {
  const text = typeof field === 'string' ? field : (field ?? []).join(',');
  const directives = new Map<string, string>();
  for (const [, name = '', quoted, plain] of text.matchAll(DIRECTIVE)) {
    const key = name.toLowerCase();
    if (!directives.has(key)) directives.set(key, quoted ?? plain ?? '');
  }
  return directives;
}

/** Larger ages count as this one (RFC 9111 §1.2.2). */
const MAX_SECONDS = 2 ** 31;

function readSeconds(text: string): number | undefined {
  return /^\d+$/.test(text) ? Math.min(Number(text), MAX_SECONDS) : undefined;
}

function readDate(field: ResponseFields[string]): number | undefined {
  const timeMs = typeof field === 'string' ? Date.parse(field) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}

/** Decodes UTF-8, which arrives as a character for each byte. */
function decode(field: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(field, 'latin1'));
  } catch {
    return field;
  }
}

function readLength(fields: ResponseFields): number | undefined {
  const text = textOf(fields['content-length']);
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Joins repeated headers into an invalid text. */
function textOf(field: ResponseFields[string]): string {
  return (typeof field === 'string' ? field : (field ?? []).join(', ')).trim();
}
