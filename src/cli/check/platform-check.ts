import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { App } from '../../app.ts';
import type { Config } from '../../config/config.ts';
import { describeLocation } from '../../config/variables/storage-settings.ts';
import { formatCauses } from '../../contract/errors.ts';
import { platformResources } from '../../contract/resources.ts';
import { signAttachment } from '../../contract/signing/attachment-signature.ts';
import { formatExternalPath } from '../../contract/signing/external-path.ts';
import { RELAY_PREFIX } from '../../contract/signing/relay-capability.ts';
import { openStorage } from '../../storage/open-storage.ts';
import { CommandError, silentLog } from '../command.ts';
import { withOfflineApp } from '../offline-app.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

/** Constant, so that the next check replaces an upload that could not be removed. */
const UPLOAD_KEY = 'darkroom-check.png';

const CAPABILITY_SECONDS = 60;

const REMOVAL_TIMEOUT_MS = 10_000;

type Uploads = NonNullable<Config['uploads']>;

type Send = (path: string, request?: RequestInit) => Promise<{ status: number; bytes: Buffer }>;

/** Acts as the API of the platform that this service serves (contract §14). */
export async function checkPlatform(config: Config, signal: AbortSignal): Promise<Finding[]> {
  const findings = [...checkSettings(config)];
  const unencrypted = { ...config, http: { ...config.http, tls: undefined } };
  try {
    await withOfflineApp(
      unencrypted,
      { log: silentLog },
      signal,
      async (_send, _sendAdmin, app) => {
        const send = await listen(app.server, signal);
        const avatar = (await send('/avatars/0.png')).bytes;
        const { relay, uploads, internal } = config;
        const uploadFinding =
          relay && uploads && (await tryUpload({ relay, uploads }, send, avatar));
        if (uploadFinding) findings.push(uploadFinding);
        if (uploadFinding?.kind === 'ok' && uploads !== undefined) {
          try {
            if (internal !== undefined) {
              const sendInternal =
                app.internal === undefined ? send : await listen(app.internal, signal);
              findings.push(...(await tryInternal(sendInternal, internal.token, avatar)));
            }
          } finally {
            findings.push(...(await tryRemoval(config, uploads)));
          }
        }
        findings.push(...(await tryAttachments(config, send, signal)));
      },
    );
  } catch (error) {
    signal.throwIfAborted();
    const isKnown = error instanceof CommandError;
    const cause = isKnown ? error.cause : error;
    findings.push(
      fault(
        'platform',
        `${isKnown ? error.message : 'could not be checked'}${formatCauses(cause)}`,
      ),
    );
  }
  return findings;
}

function* checkSettings(config: Config): Generator<Finding> {
  const isFluxer = config.parseOptions.resources === platformResources;
  const rows = [
    [isFluxer, fault, 'platform', 'COMPATIBILITY is not fluxer: requests are parsed strictly'],
    [config.relay, fault, 'uploads', 'RELAY_SIGNING_KEYS is not set: uploads return 404'],
    [
      config.uploads,
      fault,
      'uploads',
      'UPLOADS_S3_BUCKET or UPLOADS_DIR is not set: uploads return 403',
    ],
    [config.internal, fault, 'metadata', 'INTERNAL_PORT is not set: the API cannot post media'],
    [config.external, fault, 'links', 'EXTERNAL_SIGNING_KEYS is not set: links return 404'],
    [config.attachments.signing, warning, 'signed reads', 'ATTACHMENT_SIGNING_KEYS is not set'],
    [
      config.parseOptions.publicUrls[0],
      warning,
      'own URLs',
      'PUBLIC_URLS is not set: links to own media return 502, and the platform cannot purge',
    ],
    [config.admin, warning, 'purges', 'ADMIN_PORT is not set: the platform cannot purge'],
  ] as const;
  if (isFluxer) yield ok('platform', 'COMPATIBILITY is fluxer');
  for (const [isSet, report, subject, text] of rows) if (!isSet) yield report(subject, text);
}

async function listen(listener: App['server'], signal: AbortSignal): Promise<Send> {
  await listener.listen({ host: '127.0.0.1', port: 0 });
  const { port } = listener.server.address() as AddressInfo;
  return async (path, request) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...request, signal });
    return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
  };
}

async function tryUpload(
  { relay, uploads }: { relay: NonNullable<Config['relay']>; uploads: Uploads },
  send: Send,
  body: Buffer,
): Promise<Finding> {
  const fields = {
    b: uploads.bucket,
    k: UPLOAD_KEY,
    m: 'put',
    mb: body.length,
    ct: 'image/png',
    s: false,
    e: Math.floor(Date.now() / 1000) + CAPABILITY_SECONDS,
  };
  const payload = Buffer.from(JSON.stringify(fields)).toString('base64url');
  const capability = `${payload}.${relay.keys.sign(payload, 'base64url')}`;
  const target = `${RELAY_PREFIX}${UPLOAD_KEY}?t=${capability}`;
  const { status, bytes } = await send(target, { method: 'PUT', body: new Uint8Array(body) });
  const what = `${UPLOAD_KEY} in ${describeLocation(uploads)}`;
  return status === 200
    ? ok('uploads', `one was signed, and stored as ${what}`)
    : fault('uploads', `${what} cannot be stored: ${status} ${bytes}`);
}

/** Removes the upload, even during a stop. */
async function tryRemoval({ originLimits }: Config, uploads: Uploads): Promise<readonly Finding[]> {
  try {
    const storage = await openStorage(uploads, originLimits);
    await storage.remove(UPLOAD_KEY, REMOVAL_TIMEOUT_MS);
    return [];
  } catch (error) {
    const what = `${UPLOAD_KEY} in ${describeLocation(uploads)}`;
    return [warning('uploads', `${what} cannot be removed${formatCauses(error)}`)];
  }
}

async function tryInternal(send: Send, token: string, uploaded: Buffer): Promise<Finding[]> {
  const post = (path: string) =>
    send(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ version: 2, type: 'upload', upload_filename: UPLOAD_KEY }),
    });
  const metadata = await post('/_metadata');
  const text = metadata.bytes.toString();
  const digest = createHash('sha256').update(uploaded).digest('hex');
  const isCorrect = metadata.status === 200 && JSON.parse(text).content_hash === digest;
  const thumbnail = await post('/_thumbnail');
  const isRendered = thumbnail.status === 200;
  return [
    (isCorrect ? ok : fault)('metadata', isCorrect ? 'is correct' : `${metadata.status} ${text}`),
    isRendered
      ? ok('thumbnail', `has ${thumbnail.bytes.length} bytes`)
      : fault('thumbnail', `${thumbnail.status} ${thumbnail.bytes}`),
  ];
}

/** Reads the first attachment by a signed path and by a link to its public URL. */
async function tryAttachments(config: Config, send: Send, signal: AbortSignal): Promise<Finding[]> {
  const { external, parseOptions } = config;
  const { signing } = config.attachments;
  if (signing === undefined) return [];
  let path: string | undefined;
  const visit = ({ key }: { readonly key: string }): boolean => {
    path = signAttachment(key, signing, Date.now());
    return path === undefined;
  };
  const storage = await openStorage(config.storage, config.originLimits);
  await storage.openListing().list('attachments/', visit, signal);
  if (path === undefined) return [ok('signed reads', 'there is no attachment yet')];
  const [unsignedPath] = path.split('?');
  const tryReading = async (subject: string, target: string): Promise<Finding> => {
    const { status, bytes } = await send(target, { headers: { range: 'bytes=0-0' } });
    // An empty file returns 416.
    return [200, 206, 416].includes(status)
      ? ok(subject, `${unsignedPath} can be read`)
      : fault(subject, `${unsignedPath}: ${status} ${bytes}`);
  };
  const findings = [await tryReading('signed reads', path)];
  const [publicUrl] = parseOptions.publicUrls;
  if (external !== undefined && publicUrl !== undefined) {
    const base = [
      publicUrl.origin,
      ...publicUrl.segments.map((each = '') => encodeURIComponent(each)),
    ];
    const link = formatExternalPath(`${base.join('/')}${path}`, external.keys);
    findings.push(await tryReading('own URLs', link));
  }
  return findings;
}
