/** URLs of attachments that end: `?ex={expiry}&is={issue}&hm={signature}` (contract §9). */

import { formatPath } from '../media-path.ts';
import { parseOriginKey } from '../origin-key.ts';
import type { SigningKeys } from './signing-keys.ts';

/** What attachments are signed with. */
export interface AttachmentSigning {
  readonly keys: SigningKeys;
  /** The first line of what is signed. */
  readonly domain: string;
}

/** What the signature of a URL may turn out to be. */
export const signatureVerdicts = ['valid', 'missing', 'malformed', 'mismatch', 'expired'] as const;
export type SignatureVerdict = (typeof signatureVerdicts)[number];

/** What a URL says of its own end, and whether it is true. */
export interface JudgedSignature {
  readonly verdict: SignatureVerdict;
  /**
   * From when on it does not hold any more, in seconds since 1970, signed by us or not: `Infinity` of one that never
   * ends, `undefined` of one that says nothing that can be read.
   */
  readonly endsAtSeconds: number | undefined;
}

/** A URL's own words, each of the right form. */
interface SignatureWords {
  /** Eight hexadecimal digits, as they are signed. */
  readonly ex: string;
  readonly is: string;
  readonly uc: string;
  readonly hm: string;
}

/** The parameters, by the form of each. */
const parameterForms = {
  ex: /^(?:0|[0-9a-f]{8})$/,
  is: /^[0-9a-f]{8}$/,
  hm: /^[0-9a-f]{64}$/,
  uc: /^dp$/,
} as const satisfies Readonly<Record<string, RegExp>>;

/** The names of the parameters that a signature is made of. */
export const signatureParameters = Object.keys(
  parameterForms,
) as readonly (keyof typeof parameterForms)[];

/** The use that never ends: a person's own data export. It has `ex=0`, and no other has. */
const DATA_EXPORT = 'dp';

/** Takes the place of words that are missing, so that judging them takes as long as judging any others. */
const NO_WORDS: SignatureWords = {
  ex: '00000000',
  is: '00000000',
  uc: '',
  hm: '0'.repeat(64),
};

/** How far the times of issue are apart: all readers of half a day share one URL, and its cache entry. */
const GRID_SECONDS = 12 * 3_600;

/** How long a URL holds from its time of issue on; so from 12 to 24 hours from when it is given out. */
const LIFETIME_SECONDS = 24 * 3_600;

/** The epoch of snowflakes: the start of 2015, in milliseconds since 1970 (docs/attachments.md). */
const EPOCH_MS = 1_420_070_400_000;

/** Bits of a snowflake below its time: worker, process and sequence. */
const BITS_BELOW_TIME = 22n;

/**
 * Judges the signature of an attachment's URL. What it takes does not depend on the verdict: a signature is computed
 * with each of the keys, whatever the URL says.
 *
 * @param rawQuery what follows the `?`, still percent-encoded
 * @param key of the original, decoded: `attachments/{channel_id}/{attachment_id}/{filename}`
 * @param nowMs milliseconds since 1970
 */
export function judgeSignature(
  rawQuery: string,
  key: string,
  { keys, domain }: AttachmentSigning,
  nowMs: number,
): JudgedSignature {
  const words = readWords(rawQuery);
  const isReadable = typeof words === 'object';
  const { ex, is, uc, hm } = isReadable ? words : NO_WORDS;
  const isOurs = keys.verifies(formatMessage(domain, ex, is, uc, key), hm, 'hex');
  if (!isReadable) return { verdict: words, endsAtSeconds: undefined };
  const endsAtSeconds = uc === DATA_EXPORT ? Number.POSITIVE_INFINITY : Number.parseInt(ex, 16);
  if (!isOurs) return { verdict: 'mismatch', endsAtSeconds };
  return { verdict: nowMs < endsAtSeconds * 1000 ? 'valid' : 'expired', endsAtSeconds };
}

/**
 * The path of an attachment with a query that holds for 12 to 24 hours, the same for all who ask for it in the same
 * half of a day: a stretch of twelve hours that begins with the time at which the attachment was made.
 *
 * @param key of the original, decoded
 * @param nowMs milliseconds since 1970
 * @returns `undefined` for a key that is none of an attachment
 */
export function signAttachment(
  key: string,
  { keys, domain }: AttachmentSigning,
  nowMs: number,
): string | undefined {
  const parsed = parseOriginKey(key);
  if (parsed?.resource !== 'attachment') return undefined;
  const madeAt = Math.floor(timeOfSnowflakeMs(parsed.values.attachment_id ?? '0') / 1000);
  const age = Math.floor(nowMs / 1000) - madeAt;
  const issuedAt = madeAt + GRID_SECONDS * Math.floor(age / GRID_SECONDS);
  const [ex, is] = [issuedAt + LIFETIME_SECONDS, issuedAt].map(formatTime) as [string, string];
  const hm = keys.sign(formatMessage(domain, ex, is, '', key), 'hex');
  const path = formatPath({ ...parsed, extension: undefined });
  return `${path}?ex=${ex}&is=${is}&hm=${hm}`;
}

/** When the entity with this id was created, in milliseconds since 1970. */
export function timeOfSnowflakeMs(snowflake: string): number {
  return Number(BigInt(snowflake) >> BITS_BELOW_TIME) + EPOCH_MS;
}

function formatMessage(domain: string, ex: string, is: string, uc: string, key: string): string {
  return [domain, ex, is, uc, key].join('\n');
}

function formatTime(seconds: number): string {
  return seconds.toString(16).padStart(8, '0');
}

/**
 * The words of a signature; `missing` where there is not one of them, `malformed` where one is not as it must be. All of
 * the query is read, whatever is found on the way.
 */
function readWords(rawQuery: string): SignatureWords | 'missing' | 'malformed' {
  const given = new Map<string, string>();
  let isMalformed = false;
  for (const pair of rawQuery.split('&')) {
    const [[name, value] = ['', '']] = new URLSearchParams(`?${pair}`);
    const form = Object.hasOwn(parameterForms, name)
      ? parameterForms[name as keyof typeof parameterForms]
      : undefined;
    if (form === undefined) continue;
    // Spelled with escapes it would be the same to us and another entry in every cache in front.
    const isPlain = pair === `${name}=${value}`;
    if (!isPlain || given.has(name) || !form.test(value)) isMalformed = true;
    given.set(name, value);
  }
  if (isMalformed) return 'malformed';
  const { ex, is, hm, uc = '' } = Object.fromEntries(given);
  if (ex === undefined && is === undefined && hm === undefined) {
    return uc === '' ? 'missing' : 'malformed';
  }
  if (ex === undefined || is === undefined || hm === undefined) return 'malformed';
  if ((ex === '0') !== (uc === DATA_EXPORT)) return 'malformed';
  return { ex: ex.padStart(8, '0'), is, uc, hm };
}
