import { createHmac } from 'node:crypto';

export const SIGNING_KEY = 'an-example-key-of-thirty-two-bytes-or-more';
export const enforced = { ATTACHMENT_SIGNING: 'enforce', ATTACHMENT_SIGNING_KEYS: SIGNING_KEY };

/** Formats a time in seconds as eight hexadecimal digits. */
export const formatTime = (seconds: number): string => seconds.toString(16).padStart(8, '0');

/** Signs an attachment's key without the service's code: `ex`, `is` and `hm`. `endsAt` is in Unix seconds. */
export function signatureOf(key: string, endsAt: number, secret = SIGNING_KEY): string {
  const [ex, is] = [formatTime(endsAt), formatTime(endsAt - 86_400)];
  const hmac = createHmac('sha256', secret).update(`attachment-url-v1\n${ex}\n${is}\n\n${key}`);
  return `ex=${ex}&is=${is}&hm=${hmac.digest('hex')}`;
}

/** Returns the signed path of an attachment; its name must need no encoding. */
export function signedPath(key: string, endsAt: number, parameters = ''): string {
  return `/${key}?${parameters === '' ? '' : `${parameters}&`}${signatureOf(key, endsAt)}`;
}
