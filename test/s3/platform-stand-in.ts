import { createHmac } from 'node:crypto';

/**
 * The platform's side of its wire, without its code and without ours: keys, signatures and URLs as its API, its workers
 * and its clients make them. Facts of its media service are in contract §14; nothing here is imported from `src/`.
 */

/** Secrets that the platform and its media service share. */
export const secrets = {
  relayBase64: Buffer.alloc(32, 'relay').toString('base64'),
  attachmentBase64: Buffer.alloc(32, 'attachment').toString('base64'),
  /** A text: it signs external media, and is the bearer token of internal calls. */
  media: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
} as const;

const relayKey = Buffer.from(secrets.relayBase64, 'base64');
const attachmentKey = Buffer.from(secrets.attachmentBase64, 'base64');

/** Terms of an upload: exactly so many bytes at most, of this type; of a part, which one. */
export interface UploadTerms {
  readonly bucket: string;
  readonly key: string;
  readonly maxBytes: number;
  readonly contentType?: string;
  readonly part?: { readonly uploadId: string; readonly partNumber: number };
}

/** The text of a capability: the MAC is of its first part as text. */
function signCapability(fields: object): string {
  const payload = Buffer.from(JSON.stringify(fields)).toString('base64url');
  return `${payload}.${createHmac('sha256', relayKey).update(payload).digest('base64url')}`;
}

/** The path and query of an upload that the API permits for 900 s. */
export function relayTarget({ bucket, key, maxBytes, contentType, part }: UploadTerms): string {
  const capability = signCapability({
    ...{ b: bucket, k: key, m: 'put', mb: maxBytes, e: Math.floor(Date.now() / 1000) + 900 },
    ...(part && { u: part.uploadId, p: part.partNumber }),
    ...(contentType && { ct: contentType }),
  });
  const path = key.split('/').map(encodeURIComponent).join('/');
  const place = part && `&uploadId=${encodeURIComponent(part.uploadId)}`;
  return `/v1/relay/${path}?t=${capability}${part ? `${place}&partNumber=${part.partNumber}` : ''}`;
}

const EPOCH_MS = 1_420_070_400_000;
const STEP_SECONDS = 43_200;

/** When a snowflake was made, in seconds. */
function timeOf(id: string): number {
  return Math.floor((Number(BigInt(id) >> 22n) + EPOCH_MS) / 1000);
}

const hex = (seconds: number): string => seconds.toString(16).padStart(8, '0');

/** The path and query of an attachment as the API signs it: for a day, on a grid of half days that begins with its id. */
export function signedAttachment(key: string, isOpen = false): string {
  const [, , id = '0'] = key.split('/');
  const elapsed = Math.max(0, Math.floor(Date.now() / 1000) - timeOf(id));
  const issued = timeOf(id) + elapsed - (elapsed % STEP_SECONDS);
  const [ex, uc] = isOpen ? [0, 'dp'] : [issued + 2 * STEP_SECONDS, ''];
  const text = ['fluxer-attachment-url-v1', hex(ex), hex(issued), uc, key].join('\n');
  const hm = createHmac('sha256', attachmentKey).update(text).digest('hex');
  const path = key.split('/').map(encodeURIComponent).join('/');
  const query = `ex=${isOpen ? '0' : hex(ex)}&is=${hex(issued)}&hm=${hm}`;
  return `/${path}?${query}${uc && `&uc=${uc}`}`;
}

/** The path of another site's media as the API signs it: segmented, each segment encoded once more. */
export function externalPath(url: string, secret: string = secrets.media): string {
  const { protocol, host, pathname, search } = new URL(url);
  const segments = pathname.split('/').slice(1).map(encodeURIComponent).join('/');
  const target = [
    ...(search === '' ? [] : [encodeURIComponent(search)]),
    ...[protocol.slice(0, -1), host],
    ...(pathname === '/' ? [] : [segments]),
  ].join('/');
  return `/external/${createHmac('sha256', secret).update(target).digest('base64url')}/${target}`;
}
