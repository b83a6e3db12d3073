/** Signed message and parameters of attachment URLs (contract §9). Without Node modules, for the client library. */

export const signatureVerdicts = ['valid', 'missing', 'malformed', 'mismatch', 'expired'] as const;
export type SignatureVerdict = (typeof signatureVerdicts)[number];

export interface SignatureParameters {
  readonly ex: string;
  readonly is: string;
  readonly uc: string;
  readonly hm: string;
}

const parameterPatterns = {
  ex: /^(?:0|[0-9a-f]{8})$/,
  is: /^[0-9a-f]{8}$/,
  hm: /^[0-9a-f]{64}$/,
  uc: /^dp$/,
} as const satisfies Readonly<Record<string, RegExp>>;

export const signatureParameters = Object.keys(
  parameterPatterns,
) as readonly (keyof typeof parameterPatterns)[];

/** Value of `uc` in URLs that never expire, for data exports. Only these have `ex=0`. */
const DATA_EXPORT = 'dp';

/** Interval between issue times, so that all clients share a URL and its cache entry for half a day. */
const ISSUE_INTERVAL_SECONDS = 12 * 3_600;

/** Lifetime of a URL from its issue time: it expires 12 to 24 hours after it is signed. */
const LIFETIME_SECONDS = 24 * 3_600;

/** Epoch of snowflakes: the start of 2015, in milliseconds since 1970 (docs/signing.md). */
const EPOCH_MS = 1_420_070_400_000;

/** Bits of a snowflake below its time: worker, process and sequence. */
const BITS_BELOW_TIME = 22n;

/** Returns expiry and issue time of a URL, which change every twelve hours after the creation of the attachment. */
export function timesOf(attachmentId: string, nowMs: number): [ex: string, is: string] {
  const createdMs = Number(BigInt(attachmentId) >> BITS_BELOW_TIME) + EPOCH_MS;
  const createdAt = Math.floor(createdMs / 1000);
  const age = Math.floor(nowMs / 1000) - createdAt;
  const issuedAt = createdAt + ISSUE_INTERVAL_SECONDS * Math.floor(age / ISSUE_INTERVAL_SECONDS);
  return [formatTime(issuedAt + LIFETIME_SECONDS), formatTime(issuedAt)];
}

/** Returns the expiry of a URL in Unix time; `Infinity` if it never expires. */
export function expiryOf({ ex, uc }: SignatureParameters): number {
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

/** Parses the signature parameters. Always reads the complete query, so that the response time reveals nothing. */
export function readParameters(rawQuery: string): SignatureParameters | 'missing' | 'malformed' {
  const sent = new Map<string, string>();
  let isMalformed = false;
  for (const pair of rawQuery.split('&')) {
    const [[name, value] = ['', '']] = new URLSearchParams(`?${pair}`);
    const pattern = Object.hasOwn(parameterPatterns, name)
      ? parameterPatterns[name as keyof typeof parameterPatterns]
      : undefined;
    if (pattern === undefined) continue;
    // Rejects escapes, since each spelling would be another entry in caches in front.
    const isPlain = pair === `${name}=${value}`;
    if (!isPlain || sent.has(name) || !pattern.test(value)) isMalformed = true;
    sent.set(name, value);
  }
  if (isMalformed) return 'malformed';
  const { ex, is, hm, uc = '' } = Object.fromEntries(sent);
  if (ex === undefined && is === undefined && hm === undefined) {
    return uc === '' ? 'missing' : 'malformed';
  }
  if (ex === undefined || is === undefined || hm === undefined) return 'malformed';
  if ((ex === '0') !== (uc === DATA_EXPORT)) return 'malformed';
  return { ex: ex.padStart(8, '0'), is, uc, hm };
}
