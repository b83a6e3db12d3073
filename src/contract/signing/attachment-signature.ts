/** Attachment URLs that expire: `?ex={expiry}&is={issue}&hm={signature}` (contract §9). */

import { formatPath, parseOriginKey } from '../media-path.ts';
import type { SigningKeys } from './signing-keys.ts';

/** Keys and message domain of attachment signatures. */
export interface AttachmentSigning {
  readonly keys: SigningKeys;
  readonly domain: string;
}

export const signatureVerdicts = ['valid', 'missing', 'malformed', 'mismatch', 'expired'] as const;
export type SignatureVerdict = (typeof signatureVerdicts)[number];

/** Verdict on a URL's signature, and the URL's expiry. */
export interface JudgedSignature {
  readonly verdict: SignatureVerdict;
  /**
   * First second in which the URL is no longer valid, in Unix time, even if the signature is not ours: `Infinity` if
   * the URL never expires, `undefined` if its parameters are missing or malformed.
   */
  readonly endsAtSeconds: number | undefined;
}

/** Signature parameters of a URL, each of the right form. */
interface SignatureParameters {
  /** Eight hexadecimal digits, as in the signed message. */
  readonly ex: string;
  readonly is: string;
  readonly uc: string;
  readonly hm: string;
}

const parameterForms = {
  ex: /^(?:0|[0-9a-f]{8})$/,
  is: /^[0-9a-f]{8}$/,
  hm: /^[0-9a-f]{64}$/,
  uc: /^dp$/,
} as const satisfies Readonly<Record<string, RegExp>>;

export const signatureParameters = Object.keys(
  parameterForms,
) as readonly (keyof typeof parameterForms)[];

/** Use that never expires: a person's own data export. It has `ex=0`, and no other use has. */
const DATA_EXPORT = 'dp';

/** Stands in for missing parameters, so that judging them takes as long as judging any others. */
const NO_PARAMETERS: SignatureParameters = {
  ex: '00000000',
  is: '00000000',
  uc: '',
  hm: '0'.repeat(64),
};

/** Distance between issue times: all readers of half a day share one URL, and its cache entry. */
const GRID_SECONDS = 12 * 3_600;

/** Lifetime of a URL from its issue time on; so 12 to 24 hours from when the URL is given out. */
const LIFETIME_SECONDS = 24 * 3_600;

/** The epoch of snowflakes: the start of 2015, in milliseconds since 1970 (docs/signing.md). */
const EPOCH_MS = 1_420_070_400_000;

/** Bits of a snowflake below its time: worker, process and sequence. */
const BITS_BELOW_TIME = 22n;

/**
 * Judges the signature of an attachment's URL. The time this takes does not depend on the verdict: a signature is
 * computed with each of the keys, whatever the URL contains.
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
  const parameters = readParameters(rawQuery);
  const isReadable = typeof parameters === 'object';
  const { ex, is, uc, hm } = isReadable ? parameters : NO_PARAMETERS;
  const isOurs = keys.verifies(formatMessage(domain, ex, is, uc, key), hm, 'hex');
  if (!isReadable) return { verdict: parameters, endsAtSeconds: undefined };
  const endsAtSeconds = endOf(parameters);
  if (!isOurs) return { verdict: 'mismatch', endsAtSeconds };
  return { verdict: nowMs < endsAtSeconds * 1000 ? 'valid' : 'expired', endsAtSeconds };
}

/** Returns when a URL expires, in seconds since 1970, even if its signature is not ours; see `JudgedSignature`. */
export function readEnd(rawQuery: string): number | undefined {
  const parameters = readParameters(rawQuery);
  return typeof parameters === 'object' ? endOf(parameters) : undefined;
}

function endOf({ ex, uc }: SignatureParameters): number {
  return uc === DATA_EXPORT ? Number.POSITIVE_INFINITY : Number.parseInt(ex, 16);
}

/**
 * Returns the path of an attachment with a query that is valid for 12 to 24 hours. The path is the same for all who ask
 * in the same stretch of twelve hours; these stretches are counted from the time at which the attachment was created.
 *
 * @returns `undefined` if the key is not one of an attachment
 */
export function signAttachment(
  key: string,
  { keys, domain }: AttachmentSigning,
  nowMs: number,
): string | undefined {
  const parsed = parseOriginKey(key);
  if (parsed?.resource !== 'attachment') return undefined;
  const madeMs = Number(BigInt(parsed.values.attachment_id ?? '0') >> BITS_BELOW_TIME) + EPOCH_MS;
  const madeAt = Math.floor(madeMs / 1000);
  const age = Math.floor(nowMs / 1000) - madeAt;
  const issuedAt = madeAt + GRID_SECONDS * Math.floor(age / GRID_SECONDS);
  const [ex, is] = [issuedAt + LIFETIME_SECONDS, issuedAt].map(formatTime) as [string, string];
  const hm = keys.sign(formatMessage(domain, ex, is, '', key), 'hex');
  const path = formatPath({ ...parsed, extension: undefined });
  return `${path}?ex=${ex}&is=${is}&hm=${hm}`;
}

function formatMessage(domain: string, ex: string, is: string, uc: string, key: string): string {
  return [domain, ex, is, uc, key].join('\n');
}

function formatTime(seconds: number): string {
  return seconds.toString(16).padStart(8, '0');
}

/**
 * Reads the signature parameters; returns `missing` if there are none, `malformed` if one has the wrong form. Always
 * reads the whole query, whatever it finds on the way.
 */
function readParameters(rawQuery: string): SignatureParameters | 'missing' | 'malformed' {
  const given = new Map<string, string>();
  let isMalformed = false;
  for (const pair of rawQuery.split('&')) {
    const [[name, value] = ['', '']] = new URLSearchParams(`?${pair}`);
    const form = Object.hasOwn(parameterForms, name)
      ? parameterForms[name as keyof typeof parameterForms]
      : undefined;
    if (form === undefined) continue;
    // An escaped spelling would mean the same to us, and be another entry in every cache in front of us.
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
