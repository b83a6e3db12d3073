import { once } from 'node:events';
import { Readable } from 'node:stream';
import type { LightMyRequestResponse } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { Origin, OriginObject, Renderer } from '../../../src/pipeline/ports.ts';
import { refuse } from '../../support/http/refusal.ts';
import { createTestApp, samples, type TestApp } from '../../support/test-app.ts';

let app: TestApp;

afterEach(async () => {
  await app.close();
});

/** An origin that does one thing for every key. */
function originThat(read: Origin['read']): Origin {
  return { read };
}

/** A renderer that does one thing for every job. */
function rendererThat(render: Renderer['render']): Renderer {
  return { render };
}

function objectOf(bytes: Uint8Array, body: Readable, sizeBytes = bytes.length): OriginObject {
  return { sizeBytes, etag: 'e', lastModified: undefined, storedContentType: undefined, body };
}

const image = '/icons/1/ab.webp?size=16';
const imageKey = 'icons/1/ab';

describe('500 INTERNAL_ERROR', () => {
  const secret = new TypeError('Cannot read 10.0.0.1 of /srv/secret');

  it.each([
    ['origin', { origin: originThat(() => Promise.reject(secret)) }],
    [
      'origin, at once',
      {
        origin: originThat(() => {
          throw secret;
        }),
      },
    ],
  ])('an unexpected exception of the %s is logged with its cause, not shown', async (_, parts) => {
    app = await createTestApp(parts);
    for (const url of [image, '/attachments/1/2/a.txt']) {
      const { body } = await refuse(app, url, 'INTERNAL_ERROR', 'no-store');
      expect(body).not.toMatch(/10\.0\.0\.1|secret|TypeError/);
    }
    expect(app.log.requestErrors).toHaveLength(2);
    expect(app.log.requestErrors[0]).toMatchObject({ err: { cause: secret }, url: image });
  });

  it('an unexpected exception of the renderer is logged with its cause, not shown', async () => {
    app = await createTestApp({ renderer: rendererThat(() => Promise.reject(secret)) });
    app.originals.put(imageKey, samples.jpeg);
    const { body } = await refuse(app, image, 'INTERNAL_ERROR', 'no-store');
    expect(body).not.toMatch(/10\.0\.0\.1|secret|TypeError/);
    expect(app.log.requestErrors).toMatchObject([{ err: { cause: secret } }]);
  });

  it('gives the slot back', async () => {
    let fails = true;
    app = await createTestApp({
      settings: { WORKERS: '1', QUEUE_PER_WORKER: '0' },
      renderer: rendererThat(() =>
        fails ? Promise.reject(secret) : Promise.resolve(samples.webp),
      ),
    });
    app.originals.put(imageKey, samples.jpeg);
    for (let time = 0; time < 3; time += 1) await refuse(app, image, 'INTERNAL_ERROR', 'no-store');
    fails = false;
    expect((await app.server.inject(image)).statusCode).toBe(200);
  });
});

describe('502 ORIGIN_ERROR', () => {
  const cause = new Error('AccessDenied from 10.0.0.1');

  it.each([image, '/attachments/1/2/a.txt', '/attachments/1/2/a.png?width=9'])(
    'the origin fails: %s',
    async (url) => {
      const failure = new MediaError('ORIGIN_ERROR', { cause });
      app = await createTestApp({ origin: originThat(() => Promise.reject(failure)) });
      const { body } = await refuse(app, url, 'ORIGIN_ERROR', 'no-store');
      expect(body).not.toContain('10.0.0.1');
      expect(app.log.requestErrors).toMatchObject([{ err: { cause }, code: 'ORIGIN_ERROR', url }]);
    },
  );

  it('the origin breaks off in mid-body: no half picture', async () => {
    const half = samples.jpeg.subarray(0, 20_000);
    const broken = async function* () {
      yield half;
      throw cause;
    };
    const object = () => objectOf(samples.jpeg, Readable.from(broken(), { objectMode: false }));
    app = await createTestApp({ origin: originThat(async () => object()) });
    await refuse(app, image, 'ORIGIN_ERROR', 'no-store');
    expect(app.renderer.renders).toBe(0);
  });

  it.each([
    ['fewer', samples.jpeg.length + 1],
    ['more', samples.jpeg.length - 1],
  ])('the origin sends %s bytes than it promised', async (_, sizeBytes) => {
    const object = () =>
      objectOf(samples.jpeg, Readable.from([samples.jpeg], { objectMode: false }), sizeBytes);
    app = await createTestApp({ origin: originThat(async () => object()) });
    await refuse(app, image, 'ORIGIN_ERROR', 'no-store');
    expect(app.renderer.renders).toBe(0);
  });

  it('the origin breaks off before a passthrough attachment has begun', async () => {
    const broken = async function* () {
      yield samples.mp4.subarray(0, 100);
      throw cause;
    };
    const object = () => objectOf(samples.mp4, Readable.from(broken(), { objectMode: false }));
    app = await createTestApp({ origin: originThat(async () => object()) });
    await refuse(app, '/attachments/1/2/clip.mp4', 'ORIGIN_ERROR', 'no-store');
  });

  it('the origin breaks off before the part of a passthrough attachment has begun', async () => {
    const read: Origin['read'] = async (_key, { range = { first: 0, last: undefined } }) => {
      const bytes = samples.mp4.subarray(range.first, (range.last ?? Infinity) + 1);
      const body =
        range.first === 0
          ? Readable.from([bytes], { objectMode: false })
          : new Readable({ read: (): unknown => body.destroy(cause) });
      return objectOf(samples.mp4, body);
    };
    app = await createTestApp({ origin: originThat(read) });
    const request = { url: '/attachments/1/2/clip.mp4', headers: { range: 'bytes=20000-20009' } };
    const { headers } = await refuse(app, request, 'ORIGIN_ERROR', 'no-store');
    expect(headers).not.toHaveProperty('content-range');
    expect(app.log.requestErrors).toMatchObject([{ err: { cause } }]);
  });
});

describe('503 OVERLOADED', () => {
  /** Asks for one render per slot, light ones that take both lanes, and waits until they have begun. */
  const occupy = async (): Promise<readonly Promise<LightMyRequestResponse>[]> => {
    const running = ['icons/8/ab', 'icons/9/ab'].map((key) => {
      app.originals.put(key, samples.jpeg);
      return app.server.inject(`/${key}.webp?size=16`);
    });
    await expect.poll(() => app.renderer.renders).toBe(running.length);
    return running;
  };

  it('the queue is full: try again later', async () => {
    let finish = (): void => undefined;
    const rendered = new Promise<Uint8Array>((resolve) => {
      finish = () => resolve(samples.webp);
    });
    app = await createTestApp({
      settings: { WORKERS: '2', QUEUE_PER_WORKER: '0' },
      renderer: rendererThat(() => rendered),
    });
    app.originals.put(imageKey, samples.jpeg);
    const running = await occupy();

    const { headers } = await refuse(app, image, 'OVERLOADED', 'no-store');
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(app.renderer.renders).toBe(2);

    finish();
    for (const { statusCode } of await Promise.all(running)) expect(statusCode).toBe(200);
    expect((await app.server.inject(image)).statusCode).toBe(200);
  });

  it('the wait for a slot is over', async () => {
    app = await createTestApp({
      settings: { WORKERS: '2', QUEUE_TIMEOUT_MS: '20' },
      renderer: rendererThat(() => new Promise(() => undefined)),
    });
    app.originals.put(imageKey, samples.jpeg);
    await occupy();
    const { headers } = await refuse(app, image, 'OVERLOADED', 'no-store');
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(String(headers['server-timing'])).toMatch(
      /^store;dur=.*, origin;dur=.*, queue;dur=[^,]*$/,
    );
  });

  it('holds up nothing that needs no slot', async () => {
    app = await createTestApp({
      settings: { WORKERS: '2', QUEUE_PER_WORKER: '0' },
      renderer: rendererThat(() => new Promise(() => undefined)),
    });
    app.originals.put('emojis/1', samples.png);
    app.originals.put('attachments/1/2/a', samples.text);
    await occupy();
    for (const url of ['/emojis/1.png', '/emojis/1.png', '/attachments/1/2/a', '/avatars/0.png']) {
      expect((await app.server.inject(url)).statusCode).toBe(200);
    }
  });
});

describe('504', () => {
  it.each([image, '/attachments/1/2/a.txt'])('ORIGIN_TIMEOUT: no answer to %s', async (url) => {
    let aborted = false;
    const origin = originThat((_key, { signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return new Promise(() => undefined);
    });
    app = await createTestApp({ origin, settings: { ORIGIN_FIRST_BYTE_TIMEOUT_MS: '20' } });
    await refuse(app, url, 'ORIGIN_TIMEOUT', 'no-store');
    expect(aborted).toBe(true);
    expect(app.log.requestErrors).toMatchObject([{ code: 'ORIGIN_TIMEOUT' }]);
  });

  it('ORIGIN_TIMEOUT: a body that stops half-way is let go', async () => {
    const body = new Readable({ read: () => undefined });
    body.push(samples.jpeg.subarray(0, 1000));
    const closed = once(body, 'close').catch(() => undefined);
    app = await createTestApp({
      origin: originThat(async () => objectOf(samples.jpeg, body)),
      settings: { ORIGIN_TIMEOUT_MS: '20' },
    });
    await refuse(app, image, 'ORIGIN_TIMEOUT', 'no-store');
    await closed;
    expect(body.destroyed).toBe(true);
  });

  it('TRANSFORM_TIMEOUT: the worker is killed and replaced', async () => {
    app = await createTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '2' } });
    app.originals.put(imageKey, samples.png);
    await refuse(
      app,
      '/icons/1/ab.webp?size=1024&quality=lossless',
      'TRANSFORM_TIMEOUT',
      'no-store',
    );
    const details = expect.objectContaining({ ending: 'SIGKILL', reason: 'deadline' });
    await expect
      .poll(() => app.log.entries)
      .toContainEqual(expect.objectContaining({ level: 'warn', details }));
    expect(app.log.errors).toEqual([]);
  });
});
