import {
  expiryOf,
  formatMessage,
  readParameters,
  type SignatureVerdict,
  timesOf,
} from '../contract/signing/attachment-message.ts';
import { type SigningKeys, sign, verifies } from './hmac.ts';
import type { Id } from './kinds.ts';
import { decodePath, formatValue, parseBase, splitUrl, throwIfAny } from './values.ts';

interface AttachmentSigning {
  /** Value of `ATTACHMENT_SIGNING_KEYS`. */
  readonly signingKeys: SigningKeys;
  /** Value of `ATTACHMENT_SIGNING_DOMAIN`; omit for its default. */
  readonly domain?: string | undefined;
  /** Omit for the current time. */
  readonly now?: Date | undefined;
}

export interface SignAttachmentOptions extends AttachmentSigning {
  /** Base URL of user content; omit to return a path. */
  readonly cdnUrl?: string | undefined;
  readonly channelId: Id;
  readonly attachmentId: Id;
  readonly filename: string;
}

/** Default of `ATTACHMENT_SIGNING_DOMAIN`. */
const DOMAIN = 'attachment-url-v1';

/**
 * Returns the URL of an attachment, valid for 12 to 24 hours. Calls within half a day return the same URL, so that clients
 * share a cache entry.
 *
 * @throws RangeError with all validation errors
 */
export async function signAttachmentUrl(options: SignAttachmentOptions): Promise<string> {
  const { cdnUrl, channelId, attachmentId, filename, signingKeys } = options;
  const { domain = DOMAIN, now = new Date() } = options;
  const faults: string[] = [];
  const path = [
    'attachments',
    formatValue('channelId', 'snowflake', channelId, faults),
    formatValue('attachmentId', 'snowflake', attachmentId, faults),
    formatValue('filename', 'filename', filename, faults),
  ].join('/');
  throwIfAny('attachment', faults);
  const [ex, is] = timesOf(String(attachmentId), now.getTime());
  const key = `attachments/${channelId}/${attachmentId}/${filename}`;
  const hm = await sign(signingKeys, formatMessage(domain, ex, is, '', key), 'hex');
  return `${parseBase('cdnUrl', cdnUrl)}/${path}?ex=${ex}&is=${is}&hm=${hm}`;
}

export interface VerifiedAttachment {
  /** `mismatch` if no key has signed this URL. */
  readonly verdict: SignatureVerdict;
  /** `undefined` for missing or malformed parameters, and for URLs that never expire. */
  readonly expiresAt: Date | undefined;
}

/** Checks the URL of an attachment as the service does. */
export async function verifyAttachmentUrl({
  url,
  signingKeys,
  cdnUrl,
  domain = DOMAIN,
  now = new Date(),
}: AttachmentSigning & {
  readonly url: string;
  /** Base URL of user content; omit if it has no path. */
  readonly cdnUrl?: string | undefined;
}): Promise<VerifiedAttachment> {
  const { path, query } = splitUrl(url, cdnUrl);
  const key = decodePath(path.slice(1));
  const parameters = readParameters(query);
  if (typeof parameters === 'string') return { verdict: parameters, expiresAt: undefined };
  const { ex, is, uc, hm } = parameters;
  const expiry = expiryOf(parameters);
  const expiresAt = Number.isFinite(expiry) ? new Date(expiry * 1000) : undefined;
  const isSigned =
    key !== undefined &&
    (await verifies(signingKeys, formatMessage(domain, ex, is, uc, key), hm, 'hex'));
  if (!isSigned) return { verdict: 'mismatch', expiresAt };
  return { verdict: now.getTime() < expiry * 1000 ? 'valid' : 'expired', expiresAt };
}
