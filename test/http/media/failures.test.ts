import { once } from 'node:events';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { Origin, OriginObject, Renderer } from '../../../src/pipeline/ports.ts';
import { refuse } from '../../support/http/refusal.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

let app: TestApp;

/** The service before an origin that does one thing for every key. */
async function startWith(read: Origin['read'], settings: Record<string, string> = {}) {
  app = await useTestApp({ origin: { read }, settings });
}

/** The service with a renderer that does one thing for every job, and an original to render. */
async function startRendering(render: Renderer['render'], settings: Record<string, string> = {}) {
  app = await useTestApp({ renderer: { render }, settings });
  app.originals.put(imageKey, samples.jpeg);
}

function objectOf({ length: sizeBytes }: Uint8Array, body: Readable): OriginObject {
  return { sizeBytes, etag: 'e', lastModified: undefined, storedContentType: undefined, body };
}

const image = '/icons/1/ab.webp?size=16';
const imageKey = 'icons/1/ab';

describe('500 INTERNAL_ERROR', () => {
  const secret = new TypeError('Cannot read 10.0.0.1 of /srv/secret');

  const fail = (): never => {
    throw secret;
  };

  it.each<[string, () => Promise<void>]>([
    ['origin', () => startWith(() => Promise.reject(secret))],
    ['origin, at once', () => startWith(fail)],
    ['renderer', () => startRendering(() => Promise.reject(secret))],
  ])('an unexpected exception of the %s is logged with its cause, not shown', async (_, start) => {
    await start();
    const { body } = await refuse(app, image, 'INTERNAL_ERROR', 'no-store');
    expect(body).not.toMatch(/10\.0\.0\.1|secret|TypeError/);
    expect(app.log.requestErrors).toMatchObject([{ err: { cause: secret }, url: image }]);
  });

  it('gives the slot back', async () => {
    let fails = true;
    await startRendering(() => (fails ? Promise.reject(secret) : Promise.resolve(samples.webp)), {
      WORKERS: '1',
      QUEUE_PER_WORKER: '0',
    });
    for (let time = 0; time < 3; time += 1) await refuse(app, image, 'INTERNAL_ERROR', 'no-store');
    fails = false;
    expect((await app.get(image)).statusCode).toBe(200);
  });
});

describe('502 ORIGIN_ERROR', () => {
  const cause = new Error('AccessDenied from 10.0.0.1');

  it.each([image, '/attachments/1/2/a.txt', '/attachments/1/2/a.png?width=9'])(
    'the origin fails: %s',
    async (url) => {
      const failure = new MediaError('ORIGIN_ERROR', { cause });
      await startWith(() => Promise.reject(failure));
      const { body } = await refuse(app, url, 'ORIGIN_ERROR', 'no-store');
      expect(body).not.toContain('10.0.0.1');
      expect(app.log.requestErrors).toMatchObject([{ err: { cause }, code: 'ORIGIN_ERROR', url }]);
    },
  );

  /** A body that breaks off. */
  const broken = (bytes: Uint8Array): Readable => {
    const chunks = async function* () {
      yield bytes;
      throw cause;
    };
    return Readable.from(chunks(), { objectMode: false });
  };

  it.each<[string, string, Uint8Array, number]>([
    ['in mid-body: no half picture', image, samples.jpeg, 20_000],
    ['before a passthrough attachment has begun', '/attachments/1/2/clip.mp4', samples.mp4, 100],
  ])('the origin breaks off %s', async (_, url, bytes, sentBytes) => {
    await startWith(async () => objectOf(bytes, broken(bytes.subarray(0, sentBytes))));
    await refuse(app, url, 'ORIGIN_ERROR', 'no-store');
    expect(app.renderer.renders).toBe(0);
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
    await startWith(read);
    const request = { url: '/attachments/1/2/clip.mp4', headers: { range: 'bytes=20000-20009' } };
    const { headers } = await refuse(app, request, 'ORIGIN_ERROR', 'no-store');
    expect(headers).not.toHaveProperty('content-range');
    expect(app.log.requestErrors).toMatchObject([{ err: { cause } }]);
  });
});

describe('503 OVERLOADED', () => {
  const hang = () => new Promise<never>(() => undefined);

  /** Asks for one render per slot, light ones, and waits until they have begun. */
  const occupy = async (): Promise<void> => {
    for (const key of ['icons/8/ab', 'icons/9/ab']) {
      app.originals.put(key, samples.jpeg);
      void app.get(`/${key}.webp?size=16`);
    }
    await expect.poll(() => app.renderer.renders).toBe(2);
  };

  it('the wait for a slot is over', async () => {
    await startRendering(hang, { WORKERS: '2', QUEUE_TIMEOUT_MS: '20' });
    await occupy();
    const { headers } = await refuse(app, image, 'OVERLOADED', 'no-store');
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(String(headers['server-timing'])).toMatch(
      /^store;dur=.*, origin;dur=.*, queue;dur=[^,]*$/,
    );
  });

  it('holds up nothing that needs no slot', async () => {
    await startRendering(hang, { WORKERS: '2', QUEUE_PER_WORKER: '0' });
    app.originals.put('emojis/1', samples.png);
    app.originals.put('attachments/1/2/a', samples.text);
    await occupy();
    for (const url of ['/emojis/1.png', '/emojis/1.png', '/attachments/1/2/a', '/avatars/0.png']) {
      expect((await app.get(url)).statusCode).toBe(200);
    }
  });
});

describe('504', () => {
  it.each([image, '/attachments/1/2/a.txt'])('ORIGIN_TIMEOUT: no response to %s', async (url) => {
    let aborted = false;
    const hang: Origin['read'] = (_key, { signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return new Promise(() => undefined);
    };
    await startWith(hang, { ORIGIN_FIRST_BYTE_TIMEOUT_MS: '20' });
    await refuse(app, url, 'ORIGIN_TIMEOUT', 'no-store');
    expect(aborted).toBe(true);
    expect(app.log.requestErrors).toMatchObject([{ code: 'ORIGIN_TIMEOUT' }]);
  });

  it('ORIGIN_TIMEOUT: a body that stops half-way is let go', async () => {
    const body = new Readable({ read: () => undefined });
    body.push(samples.jpeg.subarray(0, 1000));
    const closed = once(body, 'close').catch(() => undefined);
    await startWith(async () => objectOf(samples.jpeg, body), { ORIGIN_TIMEOUT_MS: '20' });
    await refuse(app, image, 'ORIGIN_TIMEOUT', 'no-store');
    await closed;
    expect(body.destroyed).toBe(true);
  });

  it('TRANSFORM_TIMEOUT: the worker is killed and replaced', async () => {
    app = await useTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '2500' } });
    app.originals.put(imageKey, samples.png);
    const { workers } = app;
    // They start for the first render.
    expect((await app.get('/icons/1/ab.webp?size=16')).statusCode).toBe(200);
    for (const processId of workers.readyProcessIdsOf('light')) process.kill(processId, 'SIGSTOP');
    await refuse(app, '/icons/1/ab.webp?size=64', 'TRANSFORM_TIMEOUT', 'no-store');
    const details = expect.objectContaining({ ending: 'SIGKILL', reason: 'deadline' });
    await expect
      .poll(() => app.log.entries)
      .toContainEqual(expect.objectContaining({ level: 'warn', details }));
    expect(app.log.errors).toEqual([]);
  });
});
