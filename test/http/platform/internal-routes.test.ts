import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import sharp from 'sharp';
import { expect, it, onTestFinished, test } from 'vitest';
import { drawApng } from '../../support/images/draw-apng.ts';
import { box } from '../../support/images/heif-file.ts';
import { useExternalApp } from '../../support/sites/external-app.ts';
import {
  metricsSettings,
  scrape,
  sendToAdmin,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { samples, type TestAppOptions, useTestApp, withDecoder } from '../../support/test-app.ts';
import { freeBox, hasFfmpeg } from '../../support/videos.ts';

// Contract §14, internal routes: requests of the platform's API before it stores a message.

const token = 't'.repeat(32);
const bearer = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
const clip = readFileSync('fixtures/video/clip-h264.mp4');
const voice = readFileSync('fixtures/video/voice.ogg');

async function start({ settings, ...options }: TestAppOptions = {}) {
  const { path: UPLOADS_DIR, put: upload } = await useTemporaryDirectory();
  const app = await useTestApp({
    ...options,
    settings: {
      ...{ INTERNAL_PORT: '0', INTERNAL_TOKEN: token, UPLOADS_DIR, S3_BUCKET: 'cdn' },
      ...withDecoder,
      ...settings,
    },
  });
  const internal = app.internal ?? expect.fail('the internal listener is missing');
  const post = (url: string, payload: object, headers = bearer) =>
    internal.inject({ method: 'POST', url, payload, headers });
  return {
    ...app,
    internal,
    post,
    upload,
    request: (subject: object) => post('/_metadata', { version: 2, nsfw: 'allow', ...subject }),
  };
}

const uploaded = (key: string) => ({ type: 'upload', upload_filename: key });
const stored = (key: string) => ({ type: 's3', bucket: 'cdn', key });
const sent = (bytes: Buffer) => ({ type: 'base64', base64: bytes.toString('base64') });

const app = await start({ settings: metricsSettings });
const { internal, upload, post, request } = app;

it('returns the metadata of an upload, and reads it again each time', async () => {
  const subject = uploaded('8a/b c');
  expect((await request(subject)).statusCode).toBe(400);
  await upload('8a/b c', samples.jpeg);
  const { statusCode, payload, json } = await request(subject);
  const { width, height } = await sharp(samples.jpeg).metadata();
  expect(statusCode, payload).toBe(200);
  expect(json()).toEqual({
    ...{ format: 'jpeg', content_type: 'image/jpeg', content_hash: hash('sha256', samples.jpeg) },
    ...{ size: samples.jpeg.length, width, height, animated: false },
    placeholder: expect.stringMatching(/^[A-Za-z\d+/]{20,40}$/),
    ...{ nsfw: false, nsfw_probability: 0 },
  });
  await upload('8a/b c', samples.png);
  expect((await request(subject)).json().content_hash).toBe(hash('sha256', samples.png));
});

it('returns the same for media in base64 in the body, also as a data URL', async () => {
  const { type, base64 } = sent(samples.animatedGif);
  const plain = await request({ type, base64, with_base64: true });
  const { delay = [] } = await sharp(samples.animatedGif).metadata();
  const durationMs = delay.reduce((sum, delayMs) => sum + delayMs, 0);
  expect(plain.json()).toMatchObject({
    ...{ format: 'gif', animated: true, content_hash: hash('sha256', samples.animatedGif), base64 },
    duration: Math.ceil(durationMs / 1000),
  });
  const url = await request({ type, base64: `data:image/gif;base64,${base64}` });
  const { base64: _, ...rest } = plain.json();
  expect(url.json()).toEqual(rest);
});

it('returns complete media, up to a limit of the listener', async () => {
  const { upload, request } = await start({
    settings: { VIDEO_MAX_READ_BYTES: '131072', INTERNAL_MAX_BODY_BYTES: '2097152' },
  });
  // Bytes after the index and the frames of a video do not affect its metadata.
  const withRest = (bytes: number) => Buffer.concat([clip, box('free', Buffer.alloc(bytes))]);
  await upload('long', withRest(1_000_000));
  await upload('longer', withRest(2_000_000));
  const { json } = await request({ ...uploaded('long'), with_base64: true });
  expect(Buffer.from(json().base64, 'base64').equals(withRest(1_000_000))).toBe(true);
  expect((await request({ ...uploaded('longer'), with_base64: true })).statusCode).toBe(400);
});

it('returns the metadata of originals by bucket and key, and by local URLs with any signature', async () => {
  const { originals, request } = await start({
    settings: {
      ...{ PUBLIC_URLS: 'https://cdn.example.org/media', ATTACHMENT_SIGNING: 'enforce' },
      ATTACHMENT_SIGNING_KEYS: 'k'.repeat(32),
    },
  });
  originals.put('attachments/1/2/a.png', samples.png);
  const content_hash = hash('sha256', samples.png);
  expect((await request(stored('attachments/1/2/a.png'))).json()).toMatchObject({ content_hash });
  const url = 'https://cdn.example.org/media/attachments/1/2/a.png?ex=1&is=1&hm=no';
  expect((await request({ type: 'external', url })).json()).toMatchObject({ content_hash });
});

const frame = { draw: () => [200, 10, 10, 255] };
const flat = (width: number) =>
  sharp({ create: { width, height: 1, channels: 3, background: '#268' } })
    .png()
    .toBuffer();

test.each<[string, Uint8Array, object]>([
  ['a video', clip, { format: 'mp4', width: 240, height: 160, duration: 2, animated: false }],
  ['an audio file', voice, { format: 'ogg', width: null, height: null, duration: 1 }],
  [
    'an animated PNG',
    drawApng({ widthPx: 4, heightPx: 4, frames: [frame, frame] }),
    { format: 'apng', animated: true },
  ],
  ['a picture of the maximum width', await flat(16_384), { format: 'png', width: 16_384 }],
  ['a picture above the maximum width', await flat(16_385), { code: 'INVALID_FORM_BODY' }],
])("returns the metadata of %s in the platform's format", async (_, bytes, expected) => {
  await upload('a', bytes);
  expect((await request(uploaded('a'))).json()).toMatchObject(expected);
});

test.each([
  ['an unknown bucket', { type: 's3', bucket: 'other', key: 'a' }],
  ['a key with dots', uploaded('../a')],
  ['no type', {}],
  ['another version', { version: 1, ...uploaded('a') }],
  ['text', sent(Buffer.from('text'))],
  ['invalid base64', { type: 'base64', base64: '§' }],
  ['external media if they are disabled', { type: 'external', url: 'https://a.example/b.png' }],
  ['a damaged picture', sent(samples.png.subarray(0, 20))],
])('returns 400 for %s', async (_, subject) => {
  expect((await request(subject)).statusCode).toBe(400);
});

it('requires the token except for the health check', async () => {
  const { internal, post } = await start({ settings: { ATTACHMENT_SIGNING: 'off' } });
  for (const authorization of [`Bearer ${token}x`, '']) {
    const headers = { ...bearer, authorization };
    expect((await post('/_metadata', {}, headers)).statusCode).toBe(401);
    expect((await post('/_none', {}, headers)).statusCode).toBe(401);
  }
  const health = await internal.inject('/_health');
  expect([health.statusCode, health.body]).toEqual([200, 'OK attachment_signature=off']);
});

it('rejects other methods and bodies that are too long', async () => {
  const { internal, post } = await start({ settings: { INTERNAL_MAX_BODY_BYTES: '1048576' } });
  const response = await internal.inject({ method: 'GET', url: '/_sniff', headers: bearer });
  expect([response.statusCode, response.headers.allow]).toEqual([405, 'POST']);
  expect((await post('/_metadata', sent(Buffer.alloc(1_048_576)))).statusCode).toBe(413);
});

it('detects the media type of an upload by its first bytes', async () => {
  const sniff = async (key: string) => {
    const { statusCode, json } = await post('/_sniff', uploaded(key));
    return statusCode === 200 ? json().content_type : statusCode;
  };
  for (const [key, bytes, type] of [
    ['a', samples.png, 'image/png'],
    ['b', clip, 'video/mp4'],
    ['c', samples.svg, null],
    ['d', samples.pdf, null],
    ['e', samples.text, null],
    ['f', Buffer.alloc(0), null],
  ] as const) {
    await upload(key, bytes);
    expect(await sniff(key), key).toBe(type);
  }
  expect(await sniff('missing')).toBe(404);
});

it('returns a thumbnail of an image within 512 px, never upscaled', async () => {
  const large = { width: 1200, height: 600, channels: 3, background: '#268' } as const;
  await upload('large', await sharp({ create: large }).png().toBuffer());
  await upload('small', samples.png);
  const thumbnail = (key: string) => post('/_thumbnail', uploaded(key));
  const sizeOf = async (key: string) => {
    const { headers, rawPayload } = await thumbnail(key);
    expect(headers['content-type']).toBe('image/webp');
    const { format, width, height } = await sharp(rawPayload).metadata();
    return { format, width, height };
  };
  expect(await sizeOf('large')).toEqual({ format: 'webp', width: 512, height: 256 });
  const { width, height } = await sharp(samples.png).metadata();
  expect(await sizeOf('small')).toEqual({ format: 'webp', width, height });
  await upload('text', samples.text);
  expect((await thumbnail('text')).statusCode).toBe(400);
  expect((await thumbnail('missing')).statusCode).toBe(404);
});

test.skipIf(!hasFfmpeg)(
  'returns a thumbnail and a frame of a video, but not of an audio file',
  async () => {
    await upload('voice', voice);
    const audioFile = await post('/_frames', uploaded('voice'));
    expect([audioFile.statusCode, audioFile.json()]).toEqual([200, { frames: [] }]);
    await upload('clip', clip);
    const subject = uploaded('clip');
    const { rawPayload } = await post('/_thumbnail', subject);
    expect(await sharp(rawPayload).metadata()).toMatchObject({ width: 240, height: 160 });
    expect((await post('/_frames', { version: 1, ...subject })).statusCode).toBe(400);
    const { frames } = (await post('/_frames', { version: 2, ...subject })).json();
    expect(frames).toEqual([
      { timestamp: 0, mime_type: 'image/jpeg', base64: expect.stringMatching(/^\/9j\//) },
    ]);
  },
);

it('accepts two large bodies at a time', async () => {
  const address = await internal.listen({ host: '127.0.0.1', port: 0 });
  const begin = () => {
    const leaving = new AbortController();
    onTestFinished(() => leaving.abort());
    void fetch(`${address}/_metadata`, {
      ...{ method: 'POST', duplex: 'half', signal: leaving.signal, headers: bearer },
      body: new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('{')) }),
    } as RequestInit).catch(() => undefined);
  };
  begin();
  begin();
  const large = sent(Buffer.alloc(1_100_000));
  await expect.poll(async () => (await post('/_metadata', large)).statusCode).toBe(503);
  const { headers, json } = await post('/_metadata', large);
  expect(headers['retry-after']).toBe('1');
  expect(json().code).toBe('OVERLOADED');
  await expect
    .poll(async () => (await scrape(app)).read('darkroom_refusals_total', { reason: 'requests' }))
    .toBeGreaterThanOrEqual(2);
  expect((await post('/_metadata', {})).statusCode).toBe(400);
});

it('ignores RATE_LIMIT_REQUESTS, which is for the public listener', async () => {
  const { originals, post, get } = await start({
    settings: { RATE_LIMIT_REQUESTS: '1', CACHE_MEMORY_BYTES: '0' },
  });
  originals.put('icons/1/ab', samples.jpeg);
  for (let count = 0; count < 3; count += 1) {
    expect((await post('/_frames', { version: 2, ...stored('icons/1/ab') })).statusCode).toBe(200);
  }
  const sizes = [16, 20].map((size) => `/icons/1/ab.webp?size=${size}`);
  const statuses = [];
  for (const url of sizes) statuses.push((await get(url)).statusCode);
  expect(statuses).toEqual([200, 429]);
});

test.each(['/_metadata', '/_frames', '/metadata/attachments/1/2/a.png'])(
  'logs no error if a client disconnects during %s',
  async (path) => {
    const { originals, log, ...app } = await start({ settings: metricsSettings });
    originals.put('attachments/1/2/a.png', samples.png);
    originals.alter = () => new Promise(() => undefined);
    const isAdmin = path.startsWith('/metadata');
    const listener = (isAdmin ? app.admin : app.internal) ?? expect.fail();
    const address = await listener.listen({ host: '127.0.0.1', port: 0 });
    const body = JSON.stringify({ version: 2, ...stored('attachments/1/2/a.png') });
    const leaving = new AbortController();
    const response = fetch(`${address}${path}`, {
      ...(isAdmin ? { headers: withToken } : { method: 'POST', body, headers: bearer }),
      signal: leaving.signal,
    });
    await expect.poll(() => originals.reads.get('attachments/1/2/a.png')).toBe(1);
    leaving.abort();
    await expect(response).rejects.toThrow('abort');
    await expect.poll(promisify(listener.server.getConnections.bind(listener.server))).toBe(0);
    expect(log.errors).toEqual([]);
  },
);

test('returns 451 for blocked media on every route, by key and by content', async () => {
  const { path } = await useTemporaryDirectory();
  const list = { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'list') };
  const app = await start({ settings: { ...list, ...metricsSettings } });
  const [key, copy] = ['attachments/1/2/a.png', 'attachments/1/2/b.jpg'] as const;
  app.originals.put(key, samples.png);
  app.originals.put(copy, samples.jpeg);
  await app.upload('b', samples.jpeg);
  await app.upload(key, samples.png);
  const blocked = { keys: [key], sha256: [hash('sha256', samples.jpeg)] };
  expect((await sendToAdmin(app, '/blocks', blocked)).statusCode).toBe(200);
  const uploads = [uploaded('b'), uploaded(key)];
  const originals = [stored(key), stored(copy)];
  for (const [route, subjects] of Object.entries({
    '/_metadata': [...uploads, ...originals, sent(samples.jpeg)],
    '/_frames': [...uploads, ...originals],
    '/_sniff': uploads,
    '/_thumbnail': uploads,
  })) {
    for (const subject of subjects) {
      const { statusCode } = await app.post(route, subject);
      expect(statusCode, `${route} ${JSON.stringify(subject)}`).toBe(451);
    }
  }
  // A video without the extension of one, which is read completely for its digest.
  await app.upload('clip', clip);
  const sniffed = await app.post('/_sniff', uploaded('clip'));
  expect([sniffed.statusCode, sniffed.json()]).toEqual([200, { content_type: 'video/mp4' }]);
});

test('returns frames within the 512 KiB that the platform reads', async () => {
  const noise = { type: 'gaussian', mean: 128, sigma: 90 } as const;
  const square = { width: 1_600, height: 1_600, channels: 3, background: '#888' } as const;
  const picture = sharp({ create: { ...square, noise } }).png();
  await upload('noise', await picture.toBuffer());
  const { json, rawPayload } = await post('/_frames', uploaded('noise'));
  expect(json().frames).toHaveLength(1);
  expect(rawPayload.length).toBeLessThan(512 * 1024);
});

test('returns the metadata of a video of another site', async () => {
  const app = await useExternalApp({
    settings: { INTERNAL_PORT: '0', INTERNAL_TOKEN: token },
  });
  app.site.serve('/clip.mp4', clip, { 'content-type': 'video/mp4' });
  const request = (path: string) =>
    app.internal?.inject({
      ...{ method: 'POST', url: '/_metadata', headers: bearer },
      payload: { version: 2, type: 'external', url: app.urlOf(path) },
    });
  const described = { format: 'mp4', width: 240, height: 160, duration: 2 };
  expect((await request('/clip.mp4'))?.json()).toMatchObject(described);
  const long = Buffer.concat([clip, freeBox(200_000), Buffer.alloc(199_992)]);
  app.site.serveRanges('/long.mp4', long);
  app.site.handlers.set('/long', (_request, response) => void response.writeHead(200).end(long));
  for (const path of ['/long.mp4', '/long']) {
    const all = { ...described, size: long.length, content_hash: hash('sha256', long) };
    expect((await request(path))?.json()).toMatchObject(all);
  }
  expect((await request('/gone.mp4'))?.statusCode).toBe(400);
});
