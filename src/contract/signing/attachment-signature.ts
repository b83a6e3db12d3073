/** Attachment URLs that expire: `?ex={expiry}&is={issue}&hm={signature}` (contract §9). */

import { formatPath, parseOriginKey } from '../media-path.ts';
import {
  endOf,
  formatMessage,
  readParameters,
  type SignatureParameters,
  type SignatureVerdict,
  timesOf,
} from './attachment-message.ts';
import type { SigningKeys } from './signing-keys.ts';

export {
  type SignatureVerdict,
  signatureParameters,
  signatureVerdicts,
} from './attachment-message.ts';

/** Keys and message domain of attachment signatures. */
export interface AttachmentSigning {
  readonly keys: SigningKeys;
  readonly domain: string;
}

/** Verdict on a URL's signature, and the URL's expiry. */
export interface JudgedSignature {
  readonly verdict: SignatureVerdict;
  /**
   * First second in which the URL is no longer valid, in Unix time, even if the signature is not ours: `Infinity` if
   * the URL never expires, `undefined` if its parameters are missing or malformed.
   */
  readonly endsAtSeconds: number | undefined;
}

/** Stands in for missing parameters, so that judging them takes as long as judging any others. */
const NO_PARAMETERS: SignatureParameters = {
  ex: '00000000',
  is: '00000000',
  uc: '',
  hm: '0'.repeat(64),
};

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
  const [ex, is] = timesOf(parsed.values.attachment_id ?? '0', nowMs);
  const hm = keys.sign(formatMessage(domain, ex, is, '', key), 'hex');
  const path = formatPath({ ...parsed, extension: undefined });
  return `${path}?ex=${ex}&is=${is}&hm=${hm}`;
}
