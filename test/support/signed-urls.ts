import { createHmac } from 'node:crypto';

/** The key that tests sign with, and their settings. */
export const SIGNING_KEY = 'an-example-key-of-thirty-two-bytes-or-more';
export const enforced = { ATTACHMENT_SIGNING: 'enforce', ATTACHMENT_SIGNING_KEYS: SIGNING_KEY };

/** Eight hexadecimal digits of a time in seconds. */
export const formatTime = (seconds: number): string => seconds.toString(16).padStart(8, '0');

/**
 * The signature of an attachment's key, made apart from the service: `ex`, `is` and `hm`.
 *
 * @param endsAt in seconds since 1970
 */
export function signatureOf(key: string, endsAt: number, secret = SIGNING_KEY): string {
  const [ex, is] = [formatTime(endsAt), formatTime(endsAt - 86_400)];
  const hmac = createHmac('sha256', secret).update(`attachment-url-v1\n${ex}\n${is}\n\n${key}`);
  return `ex=${ex}&is=${is}&hm=${hmac.digest('hex')}`;
}

/** The signed path of an attachment, whose name has nothing to encode. */
export function signedPath(key: string, endsAt: number, parameters = ''): string {
  return `/${key}?${parameters === '' ? '' : `${parameters}&`}${signatureOf(key, endsAt)}`;
}
