/** Signed text of attachment URLs, and its parameters (contract §9). Needs no Node module: the client library has it. */

export const signatureVerdicts = ['valid', 'missing', 'malformed', 'mismatch', 'expired'] as const;
export type SignatureVerdict = (typeof signatureVerdicts)[number];

/** Signature parameters of a URL, each of the right form. */
export interface SignatureParameters {
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

/** Distance between issue times: all readers of half a day share one URL, and its cache entry. */
const GRID_SECONDS = 12 * 3_600;

/** Lifetime of a URL from its issue time on; so 12 to 24 hours after it is signed. */
const LIFETIME_SECONDS = 24 * 3_600;

/** The epoch of snowflakes: the start of 2015, in milliseconds since 1970 (docs/signing.md). */
const EPOCH_MS = 1_420_070_400_000;

/** Bits of a snowflake below its time: worker, process and sequence. */
const BITS_BELOW_TIME = 22n;

/**
 * Returns expiry and issue time of a URL, as the signed message has them: the same for all who ask in the same stretch of
 * twelve hours. These stretches are counted from the time at which the attachment was created.
 */
export function timesOf(attachmentId: string, nowMs: number): [ex: string, is: string] {
  const madeMs = Number(BigInt(attachmentId) >> BITS_BELOW_TIME) + EPOCH_MS;
  const madeAt = Math.floor(madeMs / 1000);
  const age = Math.floor(nowMs / 1000) - madeAt;
  const issuedAt = madeAt + GRID_SECONDS * Math.floor(age / GRID_SECONDS);
  return [formatTime(issuedAt + LIFETIME_SECONDS), formatTime(issuedAt)];
}

/** Returns the first second in which a URL is no longer valid, in Unix time; `Infinity` if it never expires. */
export function endOf({ ex, uc }: SignatureParameters): number {
  return uc === DATA_EXPORT ? Number.POSITIVE_INFINITY : Number.parseInt(ex, 16);
}

export function formatMessage(
  domain: string,
  ex: string,
  is: string,
  uc: string,
  key: string,
): string {
  return [domain, ex, is, uc, key].join('\n');
}

function formatTime(seconds: number): string {
  return seconds.toString(16).padStart(8, '0');
}

/**
 * Reads the signature parameters; returns `missing` without any, `malformed` if one has the wrong form. Always
 * reads the whole query, whatever it finds on the way.
 */
export function readParameters(rawQuery: string): SignatureParameters | 'missing' | 'malformed' {
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
