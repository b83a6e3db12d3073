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

export interface AttachmentSigning {
  readonly keys: SigningKeys;
  readonly domain: string;
}

export interface CheckedSignature {
  readonly verdict: SignatureVerdict;
  /** Expiry of the URL in Unix time, even if the signature is not valid; `undefined` without valid parameters. */
  readonly endsAtSeconds: number | undefined;
}

/** Replaces missing parameters, so that their check takes the same time. */
const NO_PARAMETERS: SignatureParameters = {
  ex: '00000000',
  is: '00000000',
  uc: '',
  hm: '0'.repeat(64),
};

/**
 * Checks the signature of an attachment's URL, in constant work: it computes a signature with each key.
 *
 * @param rawQuery text after the `?`, percent-encoded
 * @param key decoded key of the original: `attachments/{channel_id}/{attachment_id}/{filename}`
 * @param nowMs milliseconds since 1970
 */
export function checkSignature(
  rawQuery: string,
  key: string,
  { keys, domain }: AttachmentSigning,
  nowMs: number,
): CheckedSignature {
  const parameters = readParameters(rawQuery);
  const isReadable = typeof parameters === 'object';
  const { ex, is, uc, hm } = isReadable ? parameters : NO_PARAMETERS;
  const isOurs = keys.verifies(formatMessage(domain, ex, is, uc, key), hm, 'hex');
  if (!isReadable) return { verdict: parameters, endsAtSeconds: undefined };
  const endsAtSeconds = endOf(parameters);
  if (!isOurs) return { verdict: 'mismatch', endsAtSeconds };
  return { verdict: nowMs < endsAtSeconds * 1000 ? 'valid' : 'expired', endsAtSeconds };
}

/** Returns the expiry of a URL in Unix time, even if its signature is not valid. */
export function readEnd(rawQuery: string): number | undefined {
  const parameters = readParameters(rawQuery);
  return typeof parameters === 'object' ? endOf(parameters) : undefined;
}

/**
 * Returns the path of an attachment with a signed query, which is valid for 12 to 24 hours; see `timesOf`. Returns
 * `undefined` for other keys.
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
