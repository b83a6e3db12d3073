/** Attachment URLs that expire: `?ex={expiry}&is={issue}&hm={signature}` (contract §9). */

import { formatPath, parseOriginKey } from '../media-path.ts';
import {
  expiryOf,
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
  /** Expiry of the URL in Unix time, even for an invalid signature; `undefined` without valid parameters. */
  readonly expiresAtSeconds: number | undefined;
}

/** Replaces missing parameters, so that the check takes the same time. */
const NO_PARAMETERS: SignatureParameters = {
  ex: '00000000',
  is: '00000000',
  uc: '',
  hm: '0'.repeat(64),
};

/**
 * Checks the signature of an attachment's URL in constant work: always computes a signature with each signing key.
 *
 * @param rawQuery text after the `?`, percent-encoded
 * @param originKey decoded
 * @param nowMs milliseconds since 1970
 */
export function checkSignature(
  rawQuery: string,
  originKey: string,
  { keys: signingKeys, domain }: AttachmentSigning,
  nowMs: number,
): CheckedSignature {
  const parameters = readParameters(rawQuery);
  const isReadable = typeof parameters === 'object';
  const { ex, is, uc, hm } = isReadable ? parameters : NO_PARAMETERS;
  const isSigned = signingKeys.verifies(formatMessage(domain, ex, is, uc, originKey), hm, 'hex');
  if (!isReadable) return { verdict: parameters, expiresAtSeconds: undefined };
  const expiresAtSeconds = expiryOf(parameters);
  if (!isSigned) return { verdict: 'mismatch', expiresAtSeconds };
  return { verdict: nowMs < expiresAtSeconds * 1000 ? 'valid' : 'expired', expiresAtSeconds };
}

export function readExpiry(rawQuery: string): number | undefined {
  const parameters = readParameters(rawQuery);
  return typeof parameters === 'object' ? expiryOf(parameters) : undefined;
}

/** Returns the signed path of an attachment, valid for 12 to 24 hours; `undefined` for keys of other resources. */
export function signAttachment(
  originKey: string,
  { keys: signingKeys, domain }: AttachmentSigning,
  nowMs: number,
): string | undefined {
  const parsed = parseOriginKey(originKey);
  if (parsed?.resource !== 'attachment') return undefined;
  const [ex, is] = timesOf(parsed.values.attachment_id ?? '0', nowMs);
  const hm = signingKeys.sign(formatMessage(domain, ex, is, '', originKey), 'hex');
  const path = formatPath({ ...parsed, extension: undefined });
  return `${path}?ex=${ex}&is=${is}&hm=${hm}`;
}
