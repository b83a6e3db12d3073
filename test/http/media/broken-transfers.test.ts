import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { connectTo, parseAnswer, sendRaw } from '../../support/http/raw-http.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { createTestApp, samples, type TestApp } from '../../support/test-app.ts';
import { ZerosOrigin } from '../../support/zeros-origin.ts';

let app: TestApp;
let port: number;

async function start(options?: Parameters<typeof createTestApp>[0]): Promise<void> {
  app = await createTestApp(options);
  port = await app.listen();
}

afterEach(async () => {
  await app.close();
});

async function expectAlive(): Promise<void> {
  expect((await sendRaw(port, 'GET', '/avatars/0.png')).status).toBe(200);
  expect(app.log.errors).toEqual([]);
}

describe('an origin that fails in the middle of an attachment', () => {
  const promised = 50_000;

  /** Asks for an attachment of which 20 000 bytes come, and then what `finish` does. */
  async function receive(finish: (body: Readable) => void) {
    const body = new Readable({ read: () => undefined });
    body.push(Buffer.alloc(20_000));
    const object = { sizeBytes: promised, etag: 'e', lastModified: undefined, body };
    await start({ origin: { read: async () => ({ ...object, storedContentType: undefined }) } });
    const socket = await connectTo(port);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.write('GET /attachments/1/2/a HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => Buffer.concat(chunks).length).toBeGreaterThan(20_000);
    finish(body);
    await once(socket, 'close');
    return parseAnswer(Buffer.concat(chunks));
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

  /** Originals whose bodies never end; remembers them. */
  class EndlessOrigin extends MemoryOrigin {
    readonly bodies: Readable[] = [];

    override async read(...args: Parameters<MemoryOrigin['read']>) {
      const object = await super.read(...args);
      object.body.destroy();
      const body = new Readable({ read: () => undefined });
      body.push(samples.jpeg.subarray(0, 5000));
      this.bodies.push(body);
      return { ...object, body };
    }
  }

  it.each([
    ['asset', '/icons/1/ab.webp', 'icons/1/ab'],
    ['passthrough attachment', '/attachments/1/2/a', 'attachments/1/2/a'],
  ])('stops the origin read of an %s, and is no error', async (_, path, key) => {
    const origin = new EndlessOrigin();
    origin.put(key, samples.jpeg);
    await start({ origin });
    const socket = await connectTo(port);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await expect.poll(() => origin.bodies.length).toBe(1);
    expect(origin.bodies[0]?.destroyed).toBe(false);

    socket.destroy();
    await expect.poll(() => origin.bodies[0]?.destroyed).toBe(true);
    expect(app.renderer.renders).toBe(0);
    await expectAlive();
  });

  it('harms no other client that waits for the same', async () => {
    const held = defer<void>();
    class SlowOrigin extends MemoryOrigin {
      override async read(...args: Parameters<MemoryOrigin['read']>) {
        const object = await super.read(...args);
        await held.promise;
        return object;
      }
    }
    const origin = new SlowOrigin();
    origin.put('icons/1/ab', samples.jpeg);
    await start({ origin });
    const seen = watchRequests();
    const leader = await connectTo(port);
    leader.write('GET /icons/1/ab.webp HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => origin.reads.get('icons/1/ab')).toBe(1);
    const follower = sendRaw(port, 'GET', '/icons/1/ab.webp');
    await expect.poll(() => seen.requests).toBe(2);
    leader.destroy();
    await expect.poll(() => seen.departures).toBe(1);
    held.resolve();
    expect(await follower).toMatchObject({
      status: 200,
      headers: { 'cache-status': 'darkroom; fwd=miss; stored; collapsed' },
    });
    expect(app.renderer.renders).toBe(1);
    expect(origin.reads.get('icons/1/ab')).toBe(1);
    await expectAlive();
  });

  it('leaves its place in the queue', async () => {
    const rendered = defer<Uint8Array>();
    await start({
      settings: { WORKERS: '1', QUEUE_PER_WORKER: '1' },
      renderer: { render: () => rendered.promise },
    });
    const seen = watchRequests();
    for (const id of [1, 2, 3, 4]) app.originals.put(`icons/${id}/ab`, samples.jpeg);
    const running = sendRaw(port, 'GET', '/icons/1/ab.webp?size=16');
    await expect.poll(() => app.renderer.renders).toBe(1);

    // Two more for one place in the queue: the one that comes second is turned away.
    const waiting = await Promise.all([2, 3].map(() => connectTo(port)));
    const turnedAway = Promise.any(
      waiting.map(async (socket, index) => {
        socket.write(`GET /icons/${index + 2}/ab.webp HTTP/1.1\r\nHost: a\r\n\r\n`);
        const [bytes] = await once(socket, 'data');
        return parseAnswer(bytes).status;
      }),
    );
    expect(await turnedAway).toBe(503);
    for (const socket of waiting) socket.destroy();
    await expect.poll(() => seen.departures).toBe(1);

    const next = sendRaw(port, 'GET', '/icons/4/ab.webp?size=16');
    await expect.poll(() => app.originals.reads.get('icons/4/ab')).toBe(1);
    rendered.resolve(samples.webp);
    for (const response of [running, next]) expect((await response).status).toBe(200);
    expect(app.renderer.renders).toBe(2); // the one that left was never begun
  });

  it('in the middle of a large attachment stops its read', async () => {
    const origin = new ZerosOrigin(48 * 1024 * 1024); // more than the buffers of a connection hold
    await start({ origin });
    const socket = await connectTo(port);
    socket.pause();
    socket.write('GET /attachments/1/2/huge HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => socket.bytesRead).toBeGreaterThan(0);
    expect(origin.openBodies).toBe(1);
    socket.destroy();
    await expect.poll(() => origin.openBodies).toBe(0);
    await expectAlive();
  });
});
