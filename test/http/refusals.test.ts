import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { type ErrorCode, errorRegistry, MediaError } from '../../src/media/errors.ts';
import type { Origin, OriginObject, Renderer } from '../../src/pipeline/ports.ts';
import { createTestApp, samples, type TestApp } from '../support/test-app.ts';

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

/** Asks for a URL and checks all that every refusal has in common. */
async function refuse(
  request: string | { readonly url: string; readonly headers: Record<string, string> },
  code: ErrorCode,
  cacheControl: string,
) {
  const answer = await app.server.inject(request);
  const { status, message } = errorRegistry[code];
  expect(answer.statusCode).toBe(status);
  const { errors, ...body } = answer.json();
  expect(body).toEqual({ code, message });
  expect(errors === undefined).toBe(code !== 'INVALID_FORM_BODY');
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(answer.rawPayload.length),
    'cache-control': cacheControl,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    'timing-allow-origin': '*',
  });
  for (const name of ['etag', 'last-modified', 'content-disposition', 'accept-ranges']) {
    expect(answer.headers).not.toHaveProperty(name);
  }
  return { ...answer, errors: errors as readonly { path: string; message: string }[] };
}

const image = '/icons/1/ab.webp?size=16';
const imageKey = 'icons/1/ab';

describe('400 INVALID_FORM_BODY', () => {
  it('names all faults of path and query, and asks nobody', async () => {
    app = await createTestApp();
    const url = '/avatars/01/!.bmp?size=123&quality=HIGH&animated=1&v=1';
    const { errors } = await refuse(url, 'INVALID_FORM_BODY', 'public, max-age=300');
    const names = ['user_id', 'avatar_hash', 'ext', 'size', 'quality', 'animated'];
    expect(errors.map(({ path }) => path)).toEqual(names);
    for (const fault of errors) {
      expect(Object.keys(fault).sort()).toEqual(['message', 'path']);
      expect(fault.message.length).toBeGreaterThan(10);
    }
    expect(app.originals.reads.size).toBe(0);
    expect(app.log.entries).toEqual([]);
  });

  it('repeats little of what was received, in valid JSON', async () => {
    app = await createTestApp();
    const url = `/emojis/1.png?quality=${encodeURIComponent('"<script>\u2028\0🎉'.repeat(100))}`;
    const { errors, body } = await refuse(url, 'INVALID_FORM_BODY', 'public, max-age=300');
    expect(errors.map(({ path }) => path)).toEqual(['quality']);
    expect(body.length).toBeLessThan(500);
  });
});

describe('404', () => {
  it.each(['/', '/favicon.ico', '/avatars/1/ab', '/avatars/avatars/3.png', '/emojis/1.png/'])(
    'NOT_FOUND: %s is no template',
    async (url) => {
      app = await createTestApp();
      await refuse(url, 'NOT_FOUND', 'public, max-age=30');
    },
  );

  it.each([
    '/avatars/1/ab.png',
    '/stickers/1.webp',
    '/attachments/1/2/a.txt',
    '/attachments/1/2/a?width=1',
  ])('UNKNOWN_MEDIA: %s is not there', async (url) => {
    app = await createTestApp();
    await refuse(url, 'UNKNOWN_MEDIA', 'public, max-age=30');
    expect([...app.originals.reads.values()]).toEqual([1]);
  });

  it.each(['/avatars/6.png', '/avatars/18446744073709551615.png'])(
    'UNKNOWN_MEDIA: %s is out of range',
    async (url) => {
      app = await createTestApp();
      await refuse(url, 'UNKNOWN_MEDIA', 'public, max-age=30');
    },
  );
});

describe('415 UNSUPPORTED_MEDIA_TYPE', () => {
  it.each([
    ['an asset that is no image', image, imageKey, samples.text],
    ['an asset that is an SVG', image, imageKey, samples.svg],
    ['an empty asset', image, imageKey, Buffer.alloc(0)],
    [
      'a video that is to be scaled',
      '/attachments/1/2/v?width=9',
      'attachments/1/2/v',
      samples.mp4,
    ],
    ['a PDF as PNG', '/attachments/1/2/v?format=png', 'attachments/1/2/v', samples.pdf],
    ['an SVG attachment as PNG', '/attachments/1/2/v?format=png', 'attachments/1/2/v', samples.svg],
  ])('%s', async (_, url, key, bytes) => {
    app = await createTestApp();
    app.originals.put(key, bytes);
    await refuse(url, 'UNSUPPORTED_MEDIA_TYPE', 'public, max-age=300');
    expect(app.renderer.renders).toBe(0);
  });
});

describe('422', () => {
  it.each([
    ['bytes', { MAX_ORIGINAL_BYTES: String(samples.jpeg.length - 1) }, samples.jpeg],
    ['pixels', { MAX_INPUT_PIXELS: String(480 * 480 - 1) }, samples.jpeg],
    ['frames', { MAX_FRAMES: '1' }, samples.animatedGif],
  ])('MEDIA_TOO_LARGE: more %s than allowed', async (_, settings, bytes) => {
    app = await createTestApp({ settings });
    app.originals.put(imageKey, bytes);
    await refuse(image, 'MEDIA_TOO_LARGE', 'public, max-age=300');
    expect(app.renderer.renders).toBe(0);
    expect(app.log.errors).toEqual([]);
  });

  it('MEDIA_TOO_LARGE holds for what would pass through, and not for what is served verbatim', async () => {
    app = await createTestApp({ settings: { MAX_INPUT_PIXELS: String(128 * 128 - 1) } });
    app.originals.put('emojis/1', samples.png);
    app.originals.put('attachments/1/2/p.png', samples.png);
    await refuse('/emojis/1.png', 'MEDIA_TOO_LARGE', 'public, max-age=300');
    expect((await app.server.inject('/attachments/1/2/p.png')).statusCode).toBe(200);
  });

  it.each([
    ['jpeg', samples.jpeg],
    ['png', samples.png],
    ['webp', samples.webp],
    ['gif', samples.animatedGif],
  ])('UNPROCESSABLE_MEDIA: a truncated %s, each time anew', async (_, bytes) => {
    app = await createTestApp();
    app.originals.put(imageKey, bytes.subarray(0, Math.floor(bytes.length / 2)));
    for (let time = 1; time <= 2; time += 1) {
      await refuse(image, 'UNPROCESSABLE_MEDIA', 'public, max-age=300');
      expect(app.originals.reads.get(imageKey)).toBe(time); // a failure is not kept
    }
    expect(app.log.errors).toEqual([]);
  });
});

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
      const { body } = await refuse(url, 'INTERNAL_ERROR', 'no-store');
      expect(body).not.toMatch(/10\.0\.0\.1|secret|TypeError/);
    }
    expect(app.log.errors).toHaveLength(2);
    expect(app.log.errors[0]).toMatchObject({ err: { cause: secret }, url: image });
  });

  it('an unexpected exception of the renderer is logged with its cause, not shown', async () => {
    app = await createTestApp({ renderer: rendererThat(() => Promise.reject(secret)) });
    app.originals.put(imageKey, samples.jpeg);
    const { body } = await refuse(image, 'INTERNAL_ERROR', 'no-store');
    expect(body).not.toMatch(/10\.0\.0\.1|secret|TypeError/);
    expect(app.log.errors).toMatchObject([{ err: { cause: secret } }]);
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
    for (let time = 0; time < 3; time += 1) await refuse(image, 'INTERNAL_ERROR', 'no-store');
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
      const { body } = await refuse(url, 'ORIGIN_ERROR', 'no-store');
      expect(body).not.toContain('10.0.0.1');
      expect(app.log.errors).toMatchObject([{ err: { cause }, code: 'ORIGIN_ERROR', url }]);
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
    await refuse(image, 'ORIGIN_ERROR', 'no-store');
    expect(app.renderer.renders).toBe(0);
  });

  it.each([
    ['fewer', samples.jpeg.length + 1],
    ['more', samples.jpeg.length - 1],
  ])('the origin sends %s bytes than it promised', async (_, sizeBytes) => {
    const object = () =>
      objectOf(samples.jpeg, Readable.from([samples.jpeg], { objectMode: false }), sizeBytes);
    app = await createTestApp({ origin: originThat(async () => object()) });
    await refuse(image, 'ORIGIN_ERROR', 'no-store');
    expect(app.renderer.renders).toBe(0);
  });

  it('the origin breaks off before a verbatim attachment has begun', async () => {
    const broken = async function* () {
      yield samples.mp4.subarray(0, 100);
      throw cause;
    };
    const object = () => objectOf(samples.mp4, Readable.from(broken(), { objectMode: false }));
    app = await createTestApp({ origin: originThat(async () => object()) });
    await refuse('/attachments/1/2/clip.mp4', 'ORIGIN_ERROR', 'no-store');
  });

  it('the origin breaks off before the part of a verbatim attachment has begun', async () => {
    const read: Origin['read'] = async (_key, { range }) => {
      const body =
        range === undefined
          ? Readable.from([samples.mp4], { objectMode: false })
          : new Readable({ read: (): unknown => body.destroy(cause) });
      return objectOf(samples.mp4, body);
    };
    app = await createTestApp({ origin: originThat(read) });
    const request = { url: '/attachments/1/2/clip.mp4', headers: { range: 'bytes=5-9' } };
    const { headers } = await refuse(request, 'ORIGIN_ERROR', 'no-store');
    expect(headers).not.toHaveProperty('content-range');
    expect(app.log.errors).toMatchObject([{ err: { cause } }]);
  });
});

describe('503 OVERLOADED', () => {
  it('the queue is full: try again later', async () => {
    let finish = (): void => undefined;
    const rendered = new Promise<Uint8Array>((resolve) => {
      finish = () => resolve(samples.webp);
    });
    app = await createTestApp({
      settings: { WORKERS: '1', QUEUE_PER_WORKER: '0' },
      renderer: rendererThat(() => rendered),
    });
    app.originals.put(imageKey, samples.jpeg);
    app.originals.put('icons/2/ab', samples.jpeg);
    const running = app.server.inject(image);
    await expect.poll(() => app.renderer.renders).toBe(1);

    const { headers } = await refuse('/icons/2/ab.webp', 'OVERLOADED', 'no-store');
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(app.renderer.renders).toBe(1);

    finish();
    expect((await running).statusCode).toBe(200);
    expect((await app.server.inject('/icons/2/ab.webp')).statusCode).toBe(200);
  });

  it('the wait for a slot is over', async () => {
    app = await createTestApp({
      settings: { WORKERS: '1', QUEUE_TIMEOUT_MS: '20' },
      renderer: rendererThat(() => new Promise(() => undefined)),
    });
    app.originals.put(imageKey, samples.jpeg);
    app.originals.put('icons/2/ab', samples.jpeg);
    const never = app.server.inject(image);
    await expect.poll(() => app.renderer.renders).toBe(1);
    const { headers } = await refuse('/icons/2/ab.webp', 'OVERLOADED', 'no-store');
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(String(headers['server-timing'])).toMatch(
      /^store;dur=.*, origin;dur=.*, queue;dur=[^,]*$/,
    );
    never.catch(() => undefined);
  });

  it('holds up nothing that needs no slot', async () => {
    app = await createTestApp({
      settings: { WORKERS: '1', QUEUE_PER_WORKER: '0' },
      renderer: rendererThat(() => new Promise(() => undefined)),
    });
    app.originals.put(imageKey, samples.jpeg);
    app.originals.put('emojis/1', samples.png);
    app.originals.put('attachments/1/2/a', samples.text);
    app.server.inject(image).catch(() => undefined);
    await expect.poll(() => app.renderer.renders).toBe(1);
    for (const url of ['/emojis/1.png', '/attachments/1/2/a', '/avatars/0.png']) {
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
    await refuse(url, 'ORIGIN_TIMEOUT', 'no-store');
    expect(aborted).toBe(true);
    expect(app.log.errors).toMatchObject([{ code: 'ORIGIN_TIMEOUT' }]);
  });

  it('ORIGIN_TIMEOUT: a body that stops half-way is let go', async () => {
    const body = new Readable({ read: () => undefined });
    body.push(samples.jpeg.subarray(0, 1000));
    const closed = once(body, 'close').catch(() => undefined);
    app = await createTestApp({
      origin: originThat(async () => objectOf(samples.jpeg, body)),
      settings: { ORIGIN_TIMEOUT_MS: '20' },
    });
    await refuse(image, 'ORIGIN_TIMEOUT', 'no-store');
    await closed;
    expect(body.destroyed).toBe(true);
  });

  it('TRANSFORM_TIMEOUT: the worker is killed and replaced', async () => {
    app = await createTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '1' } });
    app.originals.put(imageKey, samples.webp);
    await refuse('/icons/1/ab.webp?size=1024&quality=lossless', 'TRANSFORM_TIMEOUT', 'no-store');
    const replaced = { level: 'warn', details: { ending: 'SIGKILL', delayMs: 0 } };
    await expect.poll(() => app.log.entries).toContainEqual(replaced);
    expect(app.log.errors).toEqual([]);
  });
});

describe('the lifetimes of refusals', () => {
  it('are configuration', async () => {
    const settings = { NOT_FOUND_MAX_AGE_SECONDS: '0', REFUSED_MAX_AGE_SECONDS: '9' };
    app = await createTestApp({ settings });
    app.originals.put(imageKey, samples.text);
    await refuse('/nothing', 'NOT_FOUND', 'public, max-age=0');
    await refuse('/emojis/1.png', 'UNKNOWN_MEDIA', 'public, max-age=0');
    await refuse('/emojis/x.png', 'INVALID_FORM_BODY', 'public, max-age=9');
    await refuse(image, 'UNSUPPORTED_MEDIA_TYPE', 'public, max-age=9');
  });
});
