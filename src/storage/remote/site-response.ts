import type { ByteRange, Opened } from '../../pipeline/ports.ts';
import { siteError } from '../../pipeline/site-failure.ts';
import { readContentRange } from '../origin-object.ts';
import type { ResponseFields } from './freshness.ts';

/** The head of a response. */
export interface ResponseHead {
  readonly status: number;
  readonly fields: ResponseFields;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Longest validator that is remembered, in characters: honest ones have some dozens. */
const MAX_VALIDATOR_LENGTH = 256;

// RFC 9110 §8.8.3; `etagc` has no quote and no control character.
const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

/** Returns the target of a redirect, perhaps relative; `undefined` for other responses. */
export function readRedirect({ status, fields }: ResponseHead, host: string): string | undefined {
  if (!REDIRECTS.has(status)) return undefined;
  const { location } = fields;
  if (typeof location === 'string' && location.trim() !== '') return decode(location.trim());
  throw siteError('The redirect has no target.', { reason: 'redirect', host });
}

/**
 * Reads the framing of the body.
 *
 * @param range requested range; without one, a part is rejected
 * @throws MediaError `ORIGIN_ERROR` unless the response is a 200, or a 206 with exactly the requested part
 */
export function readFraming(
  { status, fields }: ResponseHead,
  range: ByteRange | undefined,
  host: string,
): Pick<Opened, 'part' | 'sizeBytes'> {
  const refuse = (message: string): Error => siteError(message, { reason: 'response', host });
  if (status !== 200 && status !== 206) throw refuse(`The status is ${status}.`);
  const encoding = textOf(fields['content-encoding']).toLowerCase();
  // `identity` is not allowed here (RFC 9110 §8.4.1), but harmless.
  if (encoding !== '' && encoding !== 'identity') {
    throw refuse(`The body is encoded although that was not asked for: ${encoding.slice(0, 40)}`);
  }
  const transfer = textOf(fields['transfer-encoding']).toLowerCase();
  if (transfer !== '' && transfer !== 'chunked') throw refuse(`The transfer is ${transfer}.`);
  const length = readLength(fields);
  if (status === 200) return { part: undefined, sizeBytes: length };
  const asked = range && readContentRange(textOf(fields['content-range']), range, length);
  if (asked === undefined) throw refuse('The response is a part that was not asked for.');
  const { sizeBytes, ...part } = asked;
  return { part, sizeBytes };
}

/** Returns the entity tag of a response; `undefined` if it is missing, malformed or too long to be remembered. */
export function readEntityTag(fields: ResponseFields): string | undefined {
  const tag = textOf(fields.etag);
  return tag.length <= MAX_VALIDATOR_LENGTH && ENTITY_TAG.test(tag) ? tag : undefined;
}

/** Returns `Last-Modified` verbatim, to be sent back to the site. */
export function readLastModifiedText(fields: ResponseFields): string | undefined {
  const text = textOf(fields['last-modified']);
  const isDate = text.length <= MAX_VALIDATOR_LENGTH && !Number.isNaN(Date.parse(text));
  return isDate ? text : undefined;
}

/** Decodes UTF-8, in which sites send non-ASCII text, and which arrives as a character for each byte. */
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

/** Returns a header's value; values of a repeated header are joined to a text that fits nothing. */
function textOf(field: ResponseFields[string]): string {
  return (typeof field === 'string' ? field : (field ?? []).join(', ')).trim();
}
