import { hash } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import sharp from 'sharp';
import { beforeEach, describe, expect, test } from 'vitest';
import { useCdnApp } from '../../support/cdn/cdn-app.ts';
import { defer } from '../../support/deferred.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { signedPathOf, useExternalApp } from '../../support/sites/external-app.ts';
import {
  metricsSettings,
  sendToAdmin,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { type TestApp, type TestAppOptions, useTestApp } from '../../support/test-app.ts';

// Contract §15: a block cuts off responses in progress. These clients read nothing until then.

let settings: Readonly<Record<string, string>>;
beforeEach(async () => {
  const { path } = await useTemporaryDirectory();
  const BLOCKLIST_FILE = join(path, 'blocks.jsonl');
  settings = { ...metricsSettings, BLOCKLIST: 'filesystem', BLOCKLIST_FILE };
});

const key = 'attachments/1/4/large.bin';
/** Larger than the buffers of both ends of a connection. */
const large = Buffer.alloc(40 * 1024 * 1024, 'x');
const sha256 = hash('sha256', large);

async function start(options: TestAppOptions = {}): Promise<TestApp> {
  const app = await useTestApp({ ...options, settings: { ...settings, ...options.settings } });
  app.originals.put(key, large);
  return app;
}

const block = async (app: Pick<TestApp, 'requestAdmin'>, payload: object) =>
  expect((await sendToAdmin(app, '/blocks', payload)).statusCode).toBe(200);

const requestDigest = async (app: TestApp, of = key) =>
  app.requestAdmin(`/metadata/${of}?sha256=true`, { headers: withToken });

/** Waits for the first bytes of a response, and counts the bytes until it ends. */
async function beginSlowly(socket: Socket): Promise<() => Promise<number>> {
  await once(socket, 'readable');
  return async () => {
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    await closed;
    return socket.bytesRead;
  };
}

/** PNG of 33 MB that is sent unchanged, because it is already as requested. */
const square = { width: 3_300, height: 3_300, channels: 3, background: '#888' } as const;
const picture = await sharp({ create: square }).png({ compressionLevel: 0 }).toBuffer();

describe('the first block by SHA-256', () => {
  test('cuts off an original whose digest was known before it was sent', async () => {
    const app = await start();
    await requestDigest(app);
    const receive = await beginSlowly(await app.begin(`/${key}`));
    await block(app, { sha256: [sha256] });
    expect(await receive()).toBeLessThan(large.length);
  });

  test('cuts off an original whose digest became known while it was sent', async () => {
    const app = await start();
    const receive = await beginSlowly(await app.begin(`/${key}`));
    await requestDigest(app);
    await block(app, { sha256: [sha256] });
    expect(await receive()).toBeLessThan(large.length);
  });

  test('cuts off an original whose digest only the result store contains', async () => {
    const resultStore = new MemoryResultStore();
    const first = await start({ resultStore });
    await requestDigest(first);
    await first.close();
    const app = await start({ resultStore });
    const receive = await beginSlowly(await app.begin(`/${key}`));
    await block(app, { sha256: [sha256] });
    expect(await receive()).toBeLessThan(large.length);
    await expect.poll(() => resultStore.paths.length).toBeGreaterThan(0);
  });

  test('cuts off a range, but no response of other originals', async () => {
    const app = await start();
    const other = 'attachments/1/5/other.bin';
    app.originals.put(other, Buffer.alloc(large.length, 'y'));
    for (const each of [key, other]) await requestDigest(app, each);
    const begin = async (of: string) => {
      const socket = await app.connect();
      socket.write(
        `GET /${of} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nRange: bytes=9-\r\n\r\n`,
      );
      return beginSlowly(socket);
    };
    const [blocked, sent] = [await begin(key), await begin(other)];
    await block(app, { sha256: [sha256] });
    expect(await blocked()).toBeLessThan(large.length);
    expect(await sent()).toBeGreaterThan(large.length);
  });

  test('cuts off external media whose digest is known from a rendering', async () => {
    const app = await useExternalApp({ settings });
    app.site.serve('/a.png', picture, { etag: '"a"' });
    expect((await app.request('/a.png', 'width=8')).status).toBe(200);
    const receive = await beginSlowly(await app.begin(signedPathOf(app.urlOf('/a.png'))));
    await block(app, { sha256: [hash('sha256', picture)] });
    expect(await receive()).toBeLessThan(picture.length);
  });

  test('rejects an original that is being opened', async () => {
    const app = await start();
    await requestDigest(app);
    let reads = 0;
    app.originals.alter = async (opened) => {
      reads += 1;
      if (reads === 1) await block(app, { sha256: [sha256] });
      return opened;
    };
    expect((await app.get(`/${key}`)).statusCode).toBe(451);
  });
});

describe('an image of 33 MB from memory', () => {
  const name = 'attachments/1/6/noise.png';
  const url = `/${name}?format=png&quality=lossless`;

  test.each([
    ['its key', { keys: [name] }, {}],
    ['a parent directory', { prefixes: ['attachments/1/'] }, {}],
    ['its SHA-256', { sha256: [hash('sha256', picture)] }, {}],
    ['its key, in a range', { keys: [name] }, { range: 'bytes=9-' }],
  ])('is cut off by a block of %s', async (_, payload, headers) => {
    const app = await start();
    app.originals.put(name, picture);
    const { statusCode, rawPayload } = await app.get(url);
    expect([statusCode, rawPayload.length > 30e6]).toEqual([200, true]);
    const socket = await app.connect();
    const lines = Object.entries(headers).map(([field, value]) => `${field}: ${value}\r\n`);
    socket.write(`GET ${url} HTTP/1.1\r\nHost: a\r\n${lines.join('')}\r\n`);
    const receive = await beginSlowly(socket);
    await block(app, payload);
    expect(await receive()).toBeLessThan(rawPayload.length);
    expect((await app.get(url)).statusCode).toBe(451);
  });
});

test('a block that waits for the result store has already purged the CDN and cut off responses', async () => {
  const resultStore = new MemoryResultStore();
  const removal = defer<void>();
  const remove = resultStore.remove.bind(resultStore);
  resultStore.remove = (prefix) => removal.promise.then(() => remove(prefix));
  const { app, cdn, pass } = await useCdnApp('cloudflare', { resultStore });
  app.originals.put(key, large);
  await requestDigest(app);
  await expect.poll(() => resultStore.paths.length).toBe(2);
  const receive = await beginSlowly(await app.begin(`/${key}`));
  let isDone = false;
  const blocking = block(app, { sha256: [sha256] }).then(() => {
    isDone = true;
  });
  expect(await receive()).toBeLessThan(large.length);
  await pass(() => cdn.purges.length === 1);
  expect((await app.get(`/${key}`)).statusCode).toBe(451);
  expect(isDone).toBe(false);
  removal.resolve();
  await blocking;
  // The digest is still known after the purge, in memory and in the store.
  await expect.poll(() => resultStore.paths).toHaveLength(1);
  expect((await app.get(`/${key}`)).statusCode).toBe(451);
});
