import { spawnSync } from 'node:child_process';
import { createHmac, hash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListPartsCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { findFreePorts } from '../support/processes/local-server.ts';
import { usePlatformNginx } from '../support/processes/nginx.ts';
import { useService } from '../support/processes/service-process.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';
import { useDnsServer } from '../support/sites/dns-server.ts';
import { useSiteServer } from '../support/sites/site-server.ts';
import { samples } from '../support/test-app.ts';

// Contract §14 end to end: what the platform does with a message that has attachments, with both buckets on Ceph.

// The platform's side, implemented from contract §14 only: keys, signatures and URLs of its API and clients.

const relayKey = Buffer.alloc(32, 'relay');
const attachmentKey = Buffer.alloc(32, 'attachment');
/** Signs external media, and is the bearer token of internal requests. */
const mediaSecret = '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef';

const sign = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text);
const encodePath = (key: string) => key.split('/').map(encodeURIComponent).join('/');

interface UploadTerms {
  readonly bucket: string;
  readonly key: string;
  readonly maxBytes: number;
  readonly contentType?: string;
  readonly part?: { readonly uploadId: string; readonly partNumber: number };
}

/** Returns the path and query of an upload that the API permits for 900 s. The MAC signs the encoded payload. */
function relayTarget({ bucket, key, maxBytes, contentType, part }: UploadTerms): string {
  const fields = {
    b: bucket,
    k: key,
    m: 'put',
    mb: maxBytes,
    e: Math.floor(Date.now() / 1000) + 900,
    u: part?.uploadId,
    p: part?.partNumber,
    ct: contentType,
  };
  const payload = Buffer.from(JSON.stringify(fields)).toString('base64url');
  const place = part && `&uploadId=${encodeURIComponent(part.uploadId)}`;
  return `/v1/relay/${encodePath(key)}?t=${payload}.${sign(relayKey, payload).digest('base64url')}${
    part ? `${place}&partNumber=${part.partNumber}` : ''
  }`;
}

const HALF_DAY_SECONDS = 43_200;

const hex = (seconds: number): string => seconds.toString(16).padStart(8, '0');

/** Signs an attachment like the API: for a day, on a grid of half days that begins with its id. */
function signedAttachment(key: string): string {
  const [, , id = '0'] = key.split('/');
  const madeMs = Number(BigInt(id) >> 22n) + 1_420_070_400_000;
  const made = Math.floor(madeMs / 1000);
  const elapsed = Math.max(0, Math.floor(Date.now() / 1000) - made);
  const issued = made + elapsed - (elapsed % HALF_DAY_SECONDS);
  const times = [hex(issued + 2 * HALF_DAY_SECONDS), hex(issued)] as const;
  const text = ['fluxer-attachment-url-v1', ...times, '', key].join('\n');
  const hm = sign(attachmentKey, text).digest('hex');
  return `/${encodePath(key)}?ex=${times[0]}&is=${times[1]}&hm=${hm}`;
}

/** Signs external media like the API: segmented, with each segment encoded once more. */
function externalPath(url: string): string {
  const { protocol, host, pathname, search } = new URL(url);
  const query = search === '' ? '' : `${encodeURIComponent(search)}/`;
  const target = `${query}${protocol.slice(0, -1)}/${host}${encodePath(pathname)}`;
  return `/external/${sign(mediaSecret, target).digest('base64url')}/${target}`;
}

const CDN = 'platform-cdn';
const UPLOADS = 'platform-uploads';
const MEBIBYTE = 1024 * 1024;
const PUBLIC_HOST = 'chat.example.org/media';
const SITE = 'm.example.org';

/** A box that players skip makes the video long enough for several parts. */
const photo = samples.jpeg;
const FREE_BYTES = 11 * MEBIBYTE;
const clip = Buffer.concat([
  readFileSync('fixtures/video/clip-h264.mp4'),
  Buffer.from([...[24, 16, 8, 0].map((shift) => FREE_BYTES >> shift), ...Buffer.from('free')]),
  Buffer.alloc(FREE_BYTES - 8),
]);

await createRgwBucket(CDN);
await createRgwBucket(UPLOADS);
const s3 = new S3Client({ endpoint: rgw.endpoint, region: 'us-east-1', forcePathStyle: true });
const site = await useSiteServer();
const [internalPort, adminPort] = await findFreePorts(2);
const settings = {
  COMPATIBILITY: 'fluxer',
  ...{ STORAGE: 's3', S3_ENDPOINT: rgw.endpoint, ...rgw.credentials },
  ...{ S3_BUCKET: CDN, UPLOADS_S3_BUCKET: UPLOADS },
  RELAY_SIGNING_KEYS: `base64:${relayKey.toString('base64')}`,
  ATTACHMENT_SIGNING: 'enforce',
  ATTACHMENT_SIGNING_KEYS: `base64:${attachmentKey.toString('base64')}`,
  ATTACHMENT_SIGNING_DOMAIN: 'fluxer-attachment-url-v1',
  EXTERNAL_SIGNING_KEYS: mediaSecret,
  EXTERNAL_PORTS: `80,443,${site.port}`,
  EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1/32',
  EXTERNAL_DNS_SERVERS: await useDnsServer({
    [SITE]: ['127.0.0.1'],
    'example.com': ['203.0.114.7'],
  }),
  PUBLIC_URLS: `https://${PUBLIC_HOST}`,
  CDN_CACHE_CONTROL: 'true',
  ...{ INTERNAL_PORT: String(internalPort), INTERNAL_TOKEN: mediaSecret },
  ...{ ADMIN_PORT: String(adminPort), ADMIN_TOKEN: 'a-token-of-the-purge-adapter' },
};
const service = await useService(settings);

async function request(url: string, options?: RequestInit) {
  const response = await fetch(url, options);
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
}

const get = (target: string, Range = '') =>
  request(service.origin + target, Range === '' ? {} : { headers: { Range } });

async function put(terms: UploadTerms, body: Uint8Array) {
  const headers = { 'Content-Type': 'application/x-any', 'X-Client-Context': 'web' };
  const response = await fetch(service.origin + relayTarget(terms), {
    ...{ method: 'PUT', body: Buffer.from(body) },
    headers: { ...headers, Authorization: 'Bearer of-the-platform', Origin: 'https://chat.test' },
  });
  return {
    status: response.status,
    etag: response.headers.get('etag'),
    text: await response.text(),
  };
}

async function requestMetadata(subject: object) {
  const { status, bytes } = await request(`http://127.0.0.1:${internalPort}/_metadata`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${mediaSecret}` },
    body: JSON.stringify({ version: 2, nsfw: 'block', ...subject }),
  });
  expect(status, bytes.toString()).toBe(200);
  return JSON.parse(bytes.toString());
}

/** Copies an upload that a message contains, like the API. */
async function take(upload: string, key: string, ContentType: string): Promise<void> {
  const CopySource = `${UPLOADS}/${upload}`;
  const copied = { Bucket: CDN, Key: key, CopySource, ContentType };
  await s3.send(new CopyObjectCommand({ ...copied, MetadataDirective: 'REPLACE' }));
}

test('a photo in a message is uploaded with its type, copied, and served', async () => {
  const upload = randomUUID();
  const contentType = 'image/jpeg';
  const terms = { bucket: UPLOADS, key: upload, maxBytes: photo.length, contentType };
  const stored = await put(terms, photo);
  const head = await s3.send(new HeadObjectCommand({ Bucket: UPLOADS, Key: upload }));
  expect(stored).toEqual({ status: 200, etag: head.ETag, text: '' });
  expect(head.ContentType).toBe(contentType);

  const facts = await requestMetadata({ type: 'upload', upload_filename: upload });
  expect(facts).toMatchObject({ content_hash: hash('sha256', photo), content_type: contentType });
  const attachment = 'attachments/1400000000000000000/1500000000000000001/naïve photo.jpg';
  await take(upload, attachment, contentType);
  expect(await requestMetadata({ type: 's3', bucket: CDN, key: attachment })).toEqual(facts);
  const url = signedAttachment(attachment);
  expect(await get(url)).toEqual({ status: 200, bytes: photo });
  const small = `${url}&width=64&height=64&format=WEBP&quality=auto`;
  for (const target of [small, externalPath(`https://${PUBLIC_HOST}${small}`)]) {
    const { bytes } = await get(target);
    expect(await sharp(bytes).metadata()).toMatchObject({ format: 'webp', width: 64 });
  }
});

test('a video in a message is uploaded in parts, completed in S3, and served in ranges', async () => {
  const upload = randomUUID();
  const place = { Bucket: UPLOADS, Key: upload };
  const { UploadId = '' } = await s3.send(new CreateMultipartUploadCommand(place));
  for (const partNumber of [2, 1]) {
    const body = clip.subarray((partNumber - 1) * 10 * MEBIBYTE, partNumber * 10 * MEBIBYTE);
    const terms = { bucket: UPLOADS, key: upload, maxBytes: body.length };
    const stored = await put({ ...terms, part: { uploadId: UploadId, partNumber } }, body);
    expect(stored).toMatchObject({ status: 200, etag: expect.any(String) });
  }
  // The client sends no entity tags, so the API lists the parts.
  const { Parts } = await s3.send(new ListPartsCommand({ ...place, UploadId }));
  const MultipartUpload = { Parts };
  await s3.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload }));

  expect(await requestMetadata({ type: 'upload', upload_filename: upload })).toMatchObject({
    format: 'mp4',
    content_type: 'video/mp4',
    content_hash: hash('sha256', clip),
    size: clip.length,
    width: 240,
    height: 160,
    duration: 2,
  });
  const attachment = 'attachments/1400000000000000000/1500000000000000002/clip.mp4';
  await take(upload, attachment, 'video/mp4');
  const url = signedAttachment(attachment);
  expect(await get(url, 'bytes=-100')).toEqual({ status: 206, bytes: clip.subarray(-100) });
  expect(await get(url, 'bytes=0-63')).toEqual({ status: 206, bytes: clip.subarray(0, 64) });
});

test('a part needs a Content-Length and an existing upload; the type of the first part is checked', async () => {
  const key = 'attachments/3/3/parts.png';
  const begun = await s3.send(new CreateMultipartUploadCommand({ Bucket: CDN, Key: key }));
  const termsOf = (partNumber: number, uploadId = begun.UploadId ?? '') => ({
    bucket: CDN,
    key,
    maxBytes: 9,
    contentType: 'image/png',
    part: { uploadId, partNumber },
  });
  const statuses = [termsOf(1), termsOf(2), termsOf(2, '2~nothing')].map(
    async (terms) => (await put(terms, Buffer.from('no png'))).status,
  );
  expect(await Promise.all(statuses)).toEqual([415, 200, 404]);
  const chunked = { method: 'PUT', body: new Blob(['x']).stream(), duplex: 'half' } as const;
  expect((await fetch(service.origin + relayTarget(termsOf(2)), chunked)).status).toBe(411);
});

const hasNginx = spawnSync('sh', ['-c', 'PATH=$PATH:/usr/sbin command -v nginx']).status === 0;

test.skipIf(!hasNginx)(
  'the same paths work below /media of the nginx of deploy/platform',
  async () => {
    const nginx = await usePlatformNginx(Number(new URL(service.origin).port));
    const base = `http://127.0.0.1:${nginx.port}/media`;
    const terms = { bucket: UPLOADS, key: randomUUID(), maxBytes: clip.length };
    const upload = { method: 'PUT', body: Buffer.from(clip) };
    expect((await fetch(base + relayTarget(terms), upload)).status).toBe(200);
    const key = 'attachments/1400000000000000000/1500000000000000005/naïve 100%.mp4';
    await take(terms.key, key, 'video/mp4');
    const played = await request(base + signedAttachment(key), { headers: { Range: 'bytes=-9' } });
    expect(played).toEqual({ status: 206, bytes: clip.subarray(-9) });
    const path = '/d%20e/f:g@2x%2F1%25.png';
    site.serve(path, samples.png, { 'content-type': 'image/png' });
    const shown = await request(base + externalPath(`http://${SITE}:${site.port}${path}`));
    expect(shown).toEqual({ status: 200, bytes: samples.png });
    expect((await fetch(`http://127.0.0.1:${nginx.port}/avatars/0.png`)).status).toBe(404);
  },
);

test('darkroom check --platform finds no faults', async () => {
  const { status, stdout } = await runDarkroom(['check', '--platform'], { environment: settings });
  const found = stdout.toString();
  expect(found).not.toMatch(/^(?:FAULT|WARN )/m);
  expect(status).toBe(0);
  for (const subject of ['uploads', 'metadata', 'thumbnail', 'signed reads', 'own URLs']) {
    expect(found).toMatch(new RegExp(`^ok     ${subject}: `, 'm'));
  }
});
