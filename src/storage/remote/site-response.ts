import type { SiteContent } from '../../pipeline/originals/sites.ts';
import type { ByteRange } from '../../pipeline/ports.ts';
import { siteError } from '../../pipeline/site-failure.ts';
import { readContentRange } from '../origin-object.ts';
import type { ResponseFields } from './freshness.ts';

/** The head of a response. */
export interface ResponseHead {
  readonly status: number;
  readonly fields: ResponseFields;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Longest validator that is remembered, in characters: an honest one has some dozens. */
const MAX_VALIDATOR_LENGTH = 256;

// RFC 9110 §8.8.3; `etagc` has no quote and no control character.
const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

/** Where a redirect leads, relative perhaps; `undefined` for a response that is none. */
export function readRedirect({ status, fields }: ResponseHead, host: string): string | undefined {
  if (!REDIRECTS.has(status)) return undefined;
  const { location } = fields;
  if (typeof location === 'string' && location.trim() !== '') return decode(location.trim());
  throw siteError('The redirect has no place to go to.', { reason: 'redirect', host });
}

/**
 * Reads what kind of body follows.
 *
 * @param range what was asked for; a part that was not, is refused
 * @throws MediaError `ORIGIN_ERROR` for all but a 200, and a 206 that has the very part that was asked for
 */
export function readFraming(
  { status, fields }: ResponseHead,
  range: ByteRange | undefined,
  host: string,
): Pick<SiteContent, 'part' | 'sizeBytes'> {
  const refuse = (message: string): Error => siteError(message, { reason: 'response', host });
  if (status !== 200 && status !== 206) throw refuse(`The status is ${status}.`);
  const encoding = textOf(fields['content-encoding']).toLowerCase();
  // `identity` has no place there (RFC 9110 §8.4.1), but does no harm.
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

/** The tag of a response; `undefined` where it has none, or one that is malformed or not worth remembering. */
export function readEntityTag(fields: ResponseFields): string | undefined {
  const tag = textOf(fields.etag);
  return tag.length <= MAX_VALIDATOR_LENGTH && ENTITY_TAG.test(tag) ? tag : undefined;
}

/** `Last-Modified` in the site's own words, to be given back to it. */
export function readLastModifiedText(fields: ResponseFields): string | undefined {
  const text = textOf(fields['last-modified']);
  const isDate = text.length <= MAX_VALIDATOR_LENGTH && !Number.isNaN(Date.parse(text));
  return isDate ? text : undefined;
}

/** Sites send what is not ASCII as UTF-8, which comes as a character for each byte. */
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

/** A header's value; of one that came repeatedly, all of them, as one text that fits nothing. */
function textOf(field: ResponseFields[string]): string {
  return (typeof field === 'string' ? field : (field ?? []).join(', ')).trim();
}
