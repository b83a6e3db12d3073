import { once } from 'node:events';
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { collect, parseAnswer } from '../../support/http/raw-http.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';
import { ZerosOrigin } from '../../support/zeros-origin.ts';

let app: TestApp;
beforeEach(async () => {
  app = await useTestApp();
});

/** An original in pieces: what is pushed. */
const openBody = () => new Readable({ read: () => undefined });

async function expectAlive(): Promise<void> {
  expect((await app.send('GET', '/avatars/0.png')).status).toBe(200);
  expect(app.log.errors).toEqual([]);
}

describe('an origin that fails in the middle of an attachment', () => {
  const promised = 50_000;

  /** Asks for an attachment of which 20 000 bytes come, and then what `finish` does. */
  async function receive(finish: (body: Readable) => void) {
    const body = openBody();
    body.push(Buffer.alloc(20_000));
    app.originals.put('attachments/1/2/a', Buffer.alloc(promised));
    app.originals.alter = (object) => ({ ...object, body });
    const { bytes, whole } = collect(await app.begin('/attachments/1/2/a'));
    await expect.poll(() => bytes().length).toBeGreaterThan(20_000);
    finish(body);
    return parseAnswer(await whole());
  }

  it.each<[string, (body: Readable) => void, RegExp]>([
    ['breaks off', (body) => body.destroy(new Error('read EIO')), /^read EIO$/],
    ['ends early', (body) => body.push(null), /20000/],
    ['does not end in time', (body) => body.push(Buffer.alloc(promised)), /70000/],
  ])('%s: no client takes the response for whole, and it is logged', async (_, finish, cause) => {
    const response = await receive(finish);
    expect(response.status).toBe(200);
    expect(response.headers['content-length']).toBe(String(promised));
    expect(response.body.length).toBe(20_000);
    expect(app.log.errors).toMatchObject([
      {
        code: 'ORIGIN_ERROR',
        err: { cause: { message: expect.stringMatching(cause) } },
        url: '/attachments/1/2/a',
      },
    ]);
  });
});

describe('a client that goes away', () => {
  /** Counts the requests that came, and those whose client left before the response's end. */
  function watchRequests() {
    const seen = { requests: 0, departures: 0 };
    app.server.server.on('request', (_, response) => {
      seen.requests += 1;
      response.once('close', () => {
        if (!response.writableFinished) seen.departures += 1;
      });
    });
    return seen;
  }

  it.each([
    ['asset', '/icons/1/ab.webp', 'icons/1/ab'],
    ['passthrough attachment', '/attachments/1/2/a', 'attachments/1/2/a'],
  ])('stops the origin read of an %s, and is no error', async (_, path, key) => {
    const body = openBody();
    body.push(samples.jpeg.subarray(0, 5000));
    app.originals.put(key, samples.jpeg);
    app.originals.alter = (object) => ({ ...object, body });
    const socket = await app.begin(path);
    await expect.poll(() => app.originals.reads.get(key)).toBe(1);
    expect(body.destroyed).toBe(false);

    socket.destroy();
    await expect.poll(() => body.destroyed).toBe(true);
    expect(app.renderer.renders).toBe(0);
    await expectAlive();
  });

  it('harms no other client that waits for the same', async () => {
    const held = defer<void>();
    app.originals.put('icons/1/ab', samples.jpeg);
    app.originals.alter = async (object) => {
      await held.promise;
      return object;
    };
    const seen = watchRequests();
    const leader = await app.begin('/icons/1/ab.webp');
    await expect.poll(() => app.originals.reads.get('icons/1/ab')).toBe(1);
    const follower = app.send('GET', '/icons/1/ab.webp');
    await expect.poll(() => seen.requests).toBe(2);
    leader.destroy();
    await expect.poll(() => seen.departures).toBe(1);
    held.resolve();
    expect(await follower).toMatchObject({
      status: 200,
      headers: { 'cache-status': 'darkroom; fwd=miss; stored; collapsed' },
    });
    expect(app.renderer.renders).toBe(1);
    expect(app.originals.reads.get('icons/1/ab')).toBe(1);
    await expectAlive();
  });

  it('leaves its place in the queue', async () => {
    const rendered = defer<Uint8Array>();
    app = await useTestApp({
      settings: { WORKERS: '1', QUEUE_PER_WORKER: '1' },
      renderer: { render: () => rendered.promise },
    });
    const seen = watchRequests();
    for (const id of [1, 2, 3, 4]) app.originals.put(`icons/${id}/ab`, samples.jpeg);
    const running = app.send('GET', '/icons/1/ab.webp?size=16');
    await expect.poll(() => app.renderer.renders).toBe(1);

    // Two more for one place in the queue: the one that comes second is turned away.
    const waiting = await Promise.all([2, 3].map((id) => app.begin(`/icons/${id}/ab.webp`)));
    const [bytes] = await Promise.any(waiting.map((socket) => once(socket, 'data')));
    expect(parseAnswer(bytes).status).toBe(503);
    for (const socket of waiting) socket.destroy();
    await expect.poll(() => seen.departures).toBe(1);

    const next = app.send('GET', '/icons/4/ab.webp?size=16');
    await expect.poll(() => app.originals.reads.get('icons/4/ab')).toBe(1);
    rendered.resolve(samples.webp);
    for (const response of [running, next]) expect((await response).status).toBe(200);
    expect(app.renderer.renders).toBe(2); // the one that left was never begun
  });

  it('in the middle of a large attachment stops its read', async () => {
    const origin = new ZerosOrigin(48 * 1024 * 1024); // more than the buffers of a connection hold
    app = await useTestApp({ origin });
    const socket = await app.begin('/attachments/1/2/huge');
    socket.pause();
    await expect.poll(() => socket.bytesRead).toBeGreaterThan(0);
    expect(origin.openBodies).toBe(1);
    socket.destroy();
    await expect.poll(() => origin.openBodies).toBe(0);
    await expectAlive();
  });
});
