import { spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
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
import { describe, expect, it, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { findFreePorts } from '../support/processes/local-server.ts';
import { usePlatformNginx } from '../support/processes/nginx.ts';
import { useService } from '../support/processes/service-process.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';
import { useDnsServer } from '../support/sites/dns-server.ts';
import { SiteServer } from '../support/sites/site-server.ts';
import { samples } from '../support/test-app.ts';
import { hasFfmpeg } from '../support/videos/ffmpeg.ts';
import {
  externalPath,
  relayTarget,
  secrets,
  signedAttachment,
  type UploadTerms,
} from './platform-stand-in.ts';

// Contract §14, all of it at once: what the platform does with a message that has attachments, both buckets on Ceph.

const CDN = 'platform-cdn';
const UPLOADS = 'platform-uploads';
const MEBIBYTE = 1024 * 1024;
const PUBLIC_HOST = 'chat.example.org/media';
const PURGE_TOKEN = 'a-token-of-the-purge-adapter';
const SITE = 'm.example.org';

/** A photo, and a video that is long enough to come in parts: a box that players skip makes it so. */
const photo = samples.jpeg;
const FREE_BYTES = 11 * MEBIBYTE;
const clip = Buffer.concat([
  readFileSync('fixtures/video/clip-h264.mp4'),
  Buffer.from([...[24, 16, 8, 0].map((shift) => FREE_BYTES >> shift), ...Buffer.from('free')]),
  Buffer.alloc(FREE_BYTES - 8),
]);

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

await createRgwBucket(CDN);
await createRgwBucket(UPLOADS);
const s3 = new S3Client({ endpoint: rgw.endpoint, region: 'us-east-1', forcePathStyle: true });
const site = await SiteServer.use();
const [internalPort, adminPort] = await findFreePorts(2);
const internalOrigin = `http://127.0.0.1:${internalPort}`;
const settings = {
  COMPATIBILITY: 'fluxer',
  ...{ STORAGE: 's3', S3_ENDPOINT: rgw.endpoint, ...rgw.credentials },
  ...{ S3_BUCKET: CDN, UPLOADS_S3_BUCKET: UPLOADS },
  RELAY_SIGNING_KEYS: `base64:${secrets.relayBase64}`,
  ATTACHMENT_SIGNING: 'enforce',
  ATTACHMENT_SIGNING_KEYS: `base64:${secrets.attachmentBase64}`,
  ATTACHMENT_SIGNING_DOMAIN: 'fluxer-attachment-url-v1',
  EXTERNAL_SIGNING_KEYS: secrets.media,
  EXTERNAL_PORTS: `80,443,${site.port}`,
  EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1/32',
  EXTERNAL_DNS_SERVERS: await useDnsServer({
    [SITE]: ['127.0.0.1'],
    'example.com': ['203.0.114.7'],
  }),
  PUBLIC_URLS: `https://${PUBLIC_HOST}`,
  CDN_CACHE_CONTROL: 'true',
  ...{ INTERNAL_PORT: String(internalPort), INTERNAL_TOKEN: secrets.media },
  ...{ ADMIN_PORT: String(adminPort), ADMIN_TOKEN: PURGE_TOKEN },
};
const service = await useService(settings);

/** A request of a client. */
async function get(target: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(service.origin + target, { headers });
  return { response, status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
}

/** An upload of a client, from another origin and with the headers of its API calls. */
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

/** A call of the API. */
async function call(path: string, body: object, token: string = secrets.media) {
  const response = await fetch(internalOrigin + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
}

async function askMetadata(subject: object) {
  const { status, bytes } = await call('/_metadata', { version: 2, nsfw: 'block', ...subject });
  expect(status, bytes.toString()).toBe(200);
  return JSON.parse(bytes.toString());
}

/** What the API does with an upload that a message names. */
async function take(upload: string, key: string, ContentType: string): Promise<void> {
  const CopySource = `${UPLOADS}/${upload}`;
  const copied = { Bucket: CDN, Key: key, CopySource, ContentType };
  await s3.send(new CopyObjectCommand({ ...copied, MetadataDirective: 'REPLACE' }));
}

describe('the platform’s message with a photo', () => {
  const upload = randomUUID();
  const attachment = 'attachments/1400000000000000000/1500000000000000001/naïve photo.jpg';

  it('uploads it, under a key that no public route reads', async () => {
    const contentType = 'image/jpeg';
    const terms = { bucket: UPLOADS, key: upload, maxBytes: photo.length, contentType };
    const stored = await put(terms, photo);
    const head = await s3.send(new HeadObjectCommand({ Bucket: UPLOADS, Key: upload }));
    expect(stored).toEqual({ status: 200, etag: head.ETag, text: '' });
    expect(head.ContentType).toBe(contentType);
    expect((await put({ ...terms, maxBytes: photo.length - 1 }, photo)).status).toBe(413);
    expect((await put({ ...terms, bucket: CDN }, photo)).status).not.toBe(200);
    expect((await get(`/${upload}`)).status).toBe(404);
    expect((await get(`/attachments/${upload}`)).status).toBe(404);
  });

  test('the API reads its beginning and asks for its metadata', async () => {
    const subject = { type: 'upload', upload_filename: upload };
    const sniffed = await call('/_sniff', subject);
    expect(JSON.parse(sniffed.bytes.toString())).toEqual({ content_type: 'image/jpeg' });
    const { width, height } = await sharp(photo).metadata();
    const facts = { width, height, content_hash: sha256(photo), size: photo.length };
    expect(await askMetadata(subject)).toMatchObject({
      ...{ format: 'jpeg', content_type: 'image/jpeg', ...facts },
      ...{ animated: false, nsfw: false, nsfw_probability: 0, placeholder: expect.any(String) },
    });
    expect((await call('/_metadata', subject, 'another-token')).status).toBe(401);
    const thumbnail = await call('/_thumbnail', subject);
    expect(await sharp(thumbnail.bytes).metadata()).toMatchObject({ format: 'webp' });
    const { frames } = JSON.parse((await call('/_frames', subject)).bytes.toString());
    expect(frames).toMatchObject([{ timestamp: 0, mime_type: 'image/jpeg' }]);
  });

  test('the API copies it, and a client who was given its URL sees it', async () => {
    await take(upload, attachment, 'image/jpeg');
    const url = signedAttachment(attachment);
    const whole = await get(url);
    expect([whole.status, sha256(whole.bytes)]).toEqual([200, sha256(photo)]);
    const { headers } = whole.response;
    expect(headers.get('cache-control')).toMatch(/^public, max-age=\d+/);
    expect(headers.get('cdn-cache-control')).toBe(headers.get('cache-control'));
    expect(headers.get('x-robots-tag')).toContain('noindex');
    expect(headers.get('content-disposition')).toMatch(/^inline/);
    const small = await get(`${url}&width=64&height=64&format=WEBP&quality=auto`);
    expect(small.status).toBe(200);
    expect(await sharp(small.bytes).metadata()).toMatchObject({ format: 'webp', width: 64 });
    const saved = await get(`${url}&download=true`);
    expect(saved.response.headers.get('content-disposition')).toMatch(/^attachment/);
    expect((await get(signedAttachment(attachment, true))).status).toBe(200);
  });

  test('the API asks for it by its URL, whose signature it ignores, and by its key', async () => {
    const url = `https://${PUBLIC_HOST}${signedAttachment(attachment).split('?')[0]}`;
    const facts = await askMetadata({ type: 'external', url });
    expect(facts.content_hash).toBe(sha256(photo));
    expect(await askMetadata({ type: 's3', bucket: CDN, key: attachment })).toEqual(facts);
    const small = `${signedAttachment(attachment)}&width=64&format=webp`;
    const shown = await get(externalPath(`https://${PUBLIC_HOST}${small}`));
    expect([shown.status, shown.response.headers.get('content-type')]).toEqual([200, 'image/webp']);
    const unsigned = await get(externalPath(url));
    expect(unsigned.status).toBe(404);
  });
});

describe('the platform’s message with a video, uploaded in parts', () => {
  const upload = randomUUID();
  const attachment = 'attachments/1400000000000000000/1500000000000000002/clip.mp4';

  it('is uploaded, and completed by the API in S3', async () => {
    const place = { Bucket: UPLOADS, Key: upload };
    const { UploadId = '' } = await s3.send(new CreateMultipartUploadCommand(place));
    const part = (partNumber: number) =>
      clip.subarray((partNumber - 1) * 10 * MEBIBYTE, partNumber * 10 * MEBIBYTE);
    for (const partNumber of [2, 1]) {
      const body = part(partNumber);
      const terms = { bucket: UPLOADS, key: upload, maxBytes: body.length };
      const stored = await put({ ...terms, part: { uploadId: UploadId, partNumber } }, body);
      expect(stored).toMatchObject({ status: 200, etag: expect.any(String) });
    }
    // The client tells no entity tags: the API lists the parts.
    const { Parts } = await s3.send(new ListPartsCommand({ ...place, UploadId }));
    const MultipartUpload = { Parts };
    await s3.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload }));
  });

  test('the API asks for its metadata, and a client plays it by ranges', async () => {
    expect(await askMetadata({ type: 'upload', upload_filename: upload })).toMatchObject({
      ...{ format: 'mp4', content_type: 'video/mp4', content_hash: sha256(clip) },
      ...{ size: clip.length, width: 240, height: 160, duration: 2 },
    });
    await take(upload, attachment, 'video/mp4');
    const url = signedAttachment(attachment);
    const end = await get(url, { Range: 'bytes=-100' });
    expect([end.status, end.bytes.length]).toEqual([206, 100]);
    expect(end.response.headers.get('content-type')).toBe('video/mp4');
    const begin = await get(url, { Range: 'bytes=0-63' });
    expect(begin.bytes).toEqual(clip.subarray(0, 64));
  });

  test.skipIf(!hasFfmpeg)('a client and the API see a frame of it', async () => {
    const poster = await get(`${signedAttachment(attachment)}&format=webp&width=120`);
    expect(poster.status).toBe(200);
    expect(await sharp(poster.bytes).metadata()).toMatchObject({ format: 'webp', width: 120 });
    const { status, bytes } = await call('/_frames', { type: 's3', bucket: CDN, key: attachment });
    expect(status).toBe(200);
    expect(JSON.parse(bytes.toString()).frames).toHaveLength(1);
  });
});

test('a part needs a length and a begun upload, and is judged by its type if it is the first', async () => {
  const key = 'attachments/3/3/parts.png';
  const begun = await s3.send(new CreateMultipartUploadCommand({ Bucket: CDN, Key: key }));
  const termsOf = (partNumber: number, uploadId = begun.UploadId ?? '') => ({
    ...{ bucket: CDN, key, maxBytes: 9, contentType: 'image/png' },
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
    const request = { method: 'PUT', body: Buffer.from(clip) };
    expect((await fetch(base + relayTarget(terms), request)).status).toBe(200);
    const key = 'attachments/1400000000000000000/1500000000000000005/naïve 100%.mp4';
    await take(terms.key, key, 'video/mp4');
    const played = await fetch(base + signedAttachment(key), { headers: { Range: 'bytes=-9' } });
    expect([played.status, (await played.arrayBuffer()).byteLength]).toEqual([206, 9]);
    const path = '/d%20e/f:g@2x%2F1%25.png';
    site.serve(path, samples.png, { 'content-type': 'image/png' });
    const shown = await fetch(base + externalPath(`http://${SITE}:${site.port}${path}`));
    expect([shown.status, (await shown.arrayBuffer()).byteLength]).toEqual([
      200,
      samples.png.length,
    ]);
    expect((await fetch(`http://127.0.0.1:${nginx.port}/avatars/0.png`)).status).toBe(404);
  },
);

test('the operator’s check reports no fault', async () => {
  const { status, stdout } = await runDarkroom(['check', '--platform'], { environment: settings });
  const found = stdout.toString();
  expect(found).not.toMatch(/^(?:FAULT|WARN )/m);
  expect(status).toBe(0);
  for (const subject of ['uploads', 'metadata', 'thumbnail', 'signed reads', 'own URLs']) {
    expect(found).toMatch(new RegExp(`^ok     ${subject}: `, 'm'));
  }
});
