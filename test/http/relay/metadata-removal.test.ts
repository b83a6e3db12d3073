import { hash } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { listenUntilEnd } from '../../support/at-end.ts';
import { openStream } from '../../support/open-stream.ts';
import { findDeviations, operationsOf } from '../../support/openapi/openapi-reader.ts';
import { LOCAL_CREDENTIALS, useLocalS3 } from '../../support/s3/local-s3.ts';
import { openBucketOrigin } from '../../support/s3/s3-bucket.ts';
import {
  metricsSettings,
  scrape,
  sendToAdmin,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { samples, useTestApp } from '../../support/test-app.ts';
import {
  drawLargePhoto,
  OWNER,
  photo,
  plainPhoto,
  truncatedPhoto,
} from '../../support/uploads/photos.ts';
import {
  capabilityOf,
  RELAY_KEY,
  uploadTarget,
  useRelayApp,
} from '../../support/uploads/relay-app.ts';

// Contract §16: which uploads are cleaned, and what is reported and stored. test/formats/metadata-removal checks the formats.

const largePhoto = await drawLargePhoto();

const stripping = { RELAY_STRIP_METADATA: 'true' };
const documented = operationsOf('uploads').find(({ method }) => method === 'PUT') ?? expect.fail();

type Terms = Parameters<typeof uploadTarget>[1];

async function put(
  port: number,
  key: string,
  body: Uint8Array,
  terms: Terms = {},
  framing: 'length' | 'chunks' = 'length',
) {
  const blob = new Blob([Buffer.from(body)]);
  const response = await fetch(`http://127.0.0.1:${port}${uploadTarget(key, terms)}`, {
    method: 'PUT',
    ...(framing === 'length' ? { body: blob } : { body: blob.stream(), duplex: 'half' }),
  });
  const received = {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: Buffer.from(await response.arrayBuffer()),
  };
  expect(findDeviations(documented, received)).toEqual([]);
  return {
    status: response.status,
    metadata: received.headers['x-metadata'],
    exposed: received.headers['access-control-expose-headers'] ?? '',
    message: received.body.length === 0 ? '' : JSON.parse(received.body.toString()).message,
  };
}

test.each([
  ['true', undefined, 'removed'],
  ['true', true, 'removed'],
  ['true', false, undefined],
  ['false', true, 'removed'],
  ['false', false, undefined],
  ['false', undefined, undefined],
])('with RELAY_STRIP_METADATA=%s and s=%s, X-Metadata is %s', async (setting, s, outcome) => {
  const relay = await useRelayApp({ settings: { RELAY_STRIP_METADATA: setting } });
  const key = 'attachments/1/2/photo.jpg';
  const { status, metadata, exposed } = await put(relay.port, key, photo, { stripsMetadata: s });
  expect([status, metadata]).toEqual([200, outcome]);
  expect(exposed.split(', ').includes('X-Metadata')).toBe(outcome !== undefined);
  const stored = await readFile(join(relay.directory, key));
  expect(stored.length).toBe(photo.length);
  expect(stored.equals(photo)).toBe(outcome === undefined);
  expect(stored.includes(OWNER)).toBe(outcome === undefined);
  const pixels = (bytes: Buffer) => sharp(bytes).raw().toBuffer();
  expect((await pixels(stored)).equals(await pixels(photo))).toBe(true);
});

describe.each(['length', 'chunks'] as const)('an upload with %s', (framing) => {
  test.each([
    ['without metadata', plainPhoto, 'none'],
    ['of another format', Buffer.from('two households'), 'not-supported'],
    ['that is empty', Buffer.alloc(0), 'not-supported'],
  ])('%s is stored as sent', async (_, bytes, outcome) => {
    const relay = await useRelayApp({ settings: stripping });
    const { status, metadata } = await put(relay.port, 'attachments/1/2/a', bytes, {}, framing);
    expect([status, metadata]).toEqual([200, outcome]);
    expect((await readFile(join(relay.directory, 'attachments/1/2/a'))).equals(bytes)).toBe(true);
  });

  test('that cannot be cleaned returns 415 with the reason, and stores nothing', async () => {
    const relay = await useRelayApp({ settings: stripping });
    const key = 'attachments/1/2/photo.jpg';
    const { status, message } = await put(relay.port, key, truncatedPhoto, {}, framing);
    expect(status).toBe(415);
    expect(message).toMatch(/^The metadata cannot be removed\. [A-Z].+\.$/);
    expect(await relay.list()).toEqual([]);
    expect((await put(relay.port, key, photo, {}, framing)).status).toBe(200);
  });
});

describe('in a bucket', () => {
  const start = async () => {
    const bucket = await useLocalS3({
      buckets: ['originals', 'uploads'],
      allowMismatchedSignatures: true,
      canAbortUploads: true,
    });
    const app = await useTestApp({
      settings: {
        ...stripping,
        ...{ STORAGE: 's3', S3_BUCKET: 'originals', S3_ENDPOINT: bucket.endpoint },
        ...{ UPLOADS_S3_BUCKET: 'uploads', RELAY_SIGNING_KEYS: RELAY_KEY },
        ...LOCAL_CREDENTIALS,
      },
    });
    const read = async (key: string, name = 'originals') =>
      buffer((await openStream(openBucketOrigin({ ...bucket, bucket: name }), key)).body);
    return { bucket, port: await app.listen(), read };
  };

  test.each([
    ['length', photo],
    ['chunks', photo],
    ['length', largePhoto],
    ['chunks', largePhoto],
  ] as const)('stores an upload with %s without its metadata', async (framing, bytes) => {
    const { port, read } = await start();
    const key = 'attachments/1/2/photo.jpg';
    expect(await put(port, key, bytes, {}, framing)).toMatchObject({
      status: 200,
      metadata: 'removed',
    });
    const stored = await read(key);
    expect(stored.length).toBe(bytes.length);
    expect(stored.includes(OWNER)).toBe(false);
    expect((await sharp(stored).metadata()).width).toBe((await sharp(bytes).metadata()).width);
  });

  test.each([
    ['small', truncatedPhoto],
    ['large', largePhoto.subarray(0, -5_000)],
  ])('stores nothing of a rejected %s upload without a length', async (_, bytes) => {
    const { bucket, port } = await start();
    const { status } = await put(port, 'attachments/1/2/photo.jpg', bytes, {}, 'chunks');
    expect(status).toBe(415);
    expect(await bucket.list()).toEqual([]);
    expect(await bucket.listUploads()).toEqual([]);
  });

  // This server stores the prefix of a body that ends early.
  test.each([
    ['small', truncatedPhoto],
    ['large', largePhoto.subarray(0, -5_000)],
  ])('never completes the body of a rejected %s upload with a length', async (_, bytes) => {
    const ended: string[] = [];
    const server = createServer((message, response) => {
      message.on('error', () => undefined).resume();
      message.on('end', () => {
        if (message.method === 'PUT') ended.push(message.url ?? '');
        response.writeHead(message.method === 'HEAD' ? 404 : 200, { ETag: '"a"' }).end();
      });
    });
    const S3_ENDPOINT = `http://127.0.0.1:${await listenUntilEnd(server)}`;
    const s3 = { STORAGE: 's3', S3_BUCKET: 'originals', S3_ENDPOINT, ...LOCAL_CREDENTIALS };
    const settings = { ...stripping, ...s3, RELAY_SIGNING_KEYS: RELAY_KEY };
    const port = await (await useTestApp({ settings })).listen();
    const { status } = await put(port, 'attachments/1/2/photo.jpg', bytes);
    expect([status, ended]).toEqual([415, []]);
  });

  test('cleans uploads to the uploads bucket', async () => {
    const { port, read } = await start();
    const { status, metadata } = await put(port, 'some key', photo, { bucket: 'uploads' });
    expect([status, metadata]).toEqual([200, 'removed']);
    expect((await read('some key', 'uploads')).includes(OWNER)).toBe(false);
  });
});

test('stores a part of a multipart upload as sent, or rejects it if its capability demands removal', async () => {
  const parts: Buffer[] = [];
  const app = await useTestApp({
    settings: {
      ...stripping,
      ...{ STORAGE: 's3', S3_BUCKET: 'originals', RELAY_SIGNING_KEYS: RELAY_KEY },
    },
    originalWriter: {
      write: () => expect.fail('this is not a complete upload'),
      writePart: async (_key, chunks) => {
        for await (const chunk of chunks) parts.push(Buffer.from(chunk));
        return 'tag';
      },
      has: async () => false,
      memoryBytesOf: () => 0,
    },
  });
  const port = await app.listen();
  const key = 'attachments/1/2/photo.jpg';
  const send = async (stripsMetadata?: boolean) => {
    const part = { uploadId: 'u', partNumber: 1 };
    const t = capabilityOf(key, { part, stripsMetadata });
    const target = `/v1/relay/${key}?t=${t}&uploadId=u&partNumber=1`;
    const response = await fetch(`http://127.0.0.1:${port}${target}`, {
      method: 'PUT',
      body: new Blob([Buffer.from(photo)]),
    });
    return [response.status, response.headers.get('x-metadata')];
  };
  expect(await send()).toEqual([200, 'not-supported']);
  expect(Buffer.concat(parts).equals(photo)).toBe(true);
  expect(await send(false)).toEqual([200, null]);
  parts.length = 0;
  expect(await send(true)).toEqual([415, null]);
  expect(parts).toEqual([]);
});

test('stores nothing of an upload that ends early', async () => {
  const relay = await useRelayApp({ settings: stripping });
  const socket = await relay.app.connect();
  const target = uploadTarget('attachments/1/2/photo.jpg');
  socket.write(`PUT ${target} HTTP/1.1\r\nHost: a\r\nContent-Length: ${photo.length}\r\n\r\n`);
  await new Promise((resolve) => socket.write(photo.subarray(0, 20_000), resolve));
  await expect.poll(relay.list).toHaveLength(1);
  socket.destroy();
  await once(socket, 'close');
  await expect.poll(relay.list).toEqual([]);
});

test('the metadata of an original includes the outcome until the original is purged or replaced', async () => {
  const relay = await useRelayApp({ settings: { ...stripping, ...metricsSettings } });
  const key = 'avatars/1/ab12';
  const report = async () => {
    const response = await relay.app.requestAdmin(`/metadata/${key}?placeholder=false`, {
      headers: withToken,
    });
    expect(response.statusCode).toBe(200);
    return response.headers['x-metadata'];
  };
  await put(relay.port, key, photo);
  expect(await report()).toBe('removed');
  await put(relay.port, key, plainPhoto, { replaces: true });
  expect(await report()).toBe('none');
  await put(relay.port, key, photo, { replaces: true, stripsMetadata: false });
  expect(await report()).toBeUndefined();
  await put(relay.port, key, photo, { replaces: true });
  expect(await report()).toBe('removed');
  expect((await sendToAdmin(relay.app, '/purge', { assets: [key] })).statusCode).toBe(200);
  expect(await report()).toBeUndefined();
});

test('counts the outcomes of metadata removal', async () => {
  const relay = await useRelayApp({ settings: { ...stripping, ...metricsSettings } });
  const bodies = [photo, photo, plainPhoto, samples.text, truncatedPhoto];
  for (const [index, body] of bodies.entries()) {
    await put(relay.port, `attachments/1/${index}/a`, body);
  }
  await put(relay.port, 'attachments/1/9/a', photo, { stripsMetadata: false });
  const metrics = await scrape(relay.app);
  const outcomes = ['removed', 'none', 'not-supported', 'refused'];
  const counts = outcomes.map((outcome) =>
    metrics.read('darkroom_upload_metadata_total', { outcome }),
  );
  expect(counts).toEqual([2, 1, 1, 1]);
});

test('blocks apply to the bytes as sent and as stored', async () => {
  const { path } = await useTemporaryDirectory();
  const blocklist = { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'blocks.jsonl') };
  const relay = await useRelayApp({ settings: { ...stripping, ...metricsSettings, ...blocklist } });
  await put(relay.port, 'emojis/1', photo);
  const stored = await readFile(join(relay.directory, 'emojis/1'));
  const reported = await relay.app.requestAdmin('/metadata/emojis/1?sha256=true', {
    headers: withToken,
  });
  expect(reported.json().sha256).toBe(hash('sha256', stored));
  for (const [index, blocked] of [stored, photo].entries()) {
    const sha256 = [hash('sha256', blocked)];
    expect((await sendToAdmin(relay.app, '/blocks', { sha256 })).statusCode).toBe(200);
    expect((await put(relay.port, `emojis/2${index}`, photo)).status).toBe(403);
    const release = { method: 'DELETE', headers: withToken, payload: { sha256 } } as const;
    expect((await relay.app.requestAdmin('/blocks', release)).statusCode).toBe(200);
    expect((await put(relay.port, `emojis/3${index}`, photo)).status).toBe(200);
  }
  expect(await relay.list()).toEqual(['emojis/1', 'emojis/30', 'emojis/31']);
});
