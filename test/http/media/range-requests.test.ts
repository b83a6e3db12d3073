import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Origin } from '../../../src/pipeline/ports.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { createTestApp, samples, type TestApp } from '../../support/test-app.ts';

let app: TestApp;

const lastModified = new Date('2024-02-29T12:30:15.750Z');

beforeAll(async () => {
  app = await createTestApp();
  app.originals.put('icons/1/ab', samples.jpeg, lastModified);
  app.originals.put('attachments/1/2/clip.mp4', samples.mp4, lastModified);
  app.originals.put('attachments/1/2/p.jpg', samples.jpeg, lastModified);
  app.originals.put('attachments/1/2/empty', Buffer.alloc(0));
});

afterAll(async () => {
  await app.close();
});

function get(url: string, headers: Record<string, string> = {}) {
  return app.server.inject({ url, headers });
}

describe.each([
  ['a rendered asset', '/icons/1/ab.webp?size=64'],
  ['an asset passed through', '/icons/1/ab.jpg?size=480&quality=lossless'],
  ['a transformed attachment', '/attachments/1/2/p.jpg?width=64'],
  ['a passthrough attachment', '/attachments/1/2/clip.mp4'],
  ['a default avatar', '/avatars/3.png'],
])('%s', (_, url) => {
  it.each<[string, (size: number) => readonly [first: number, last: number]]>([
    ['bytes=0-0', () => [0, 0]],
    ['bytes=0-99', () => [0, 99]],
    ['bytes=7-8', () => [7, 8]],
    ['bytes=100-', (size) => [100, size - 1]],
    ['bytes=0-', (size) => [0, size - 1]],
    ['bytes=-1', (size) => [size - 1, size - 1]],
    ['bytes=-10', (size) => [size - 10, size - 1]],
    ['bytes=-99999999', (size) => [0, size - 1]],
    ['bytes=5-99999999', (size) => [5, size - 1]],
  ])('is sent in part: %s', async (range, partOf) => {
    const whole = await get(url);
    const size = whole.rawPayload.length;
    const [first, last] = partOf(size);
    const part = await get(url, { range });
    expect(part.statusCode).toBe(206);
    expect(part.headers['content-range']).toBe(`bytes ${first}-${last}/${size}`);
    expect(part.headers['content-length']).toBe(String(last - first + 1));
    expect(part.rawPayload.equals(whole.rawPayload.subarray(first, last + 1))).toBe(true);
    for (const name of [
      'content-type',
      'etag',
      'last-modified',
      'cache-control',
      'content-disposition',
    ]) {
      expect(part.headers[name]).toBe(whole.headers[name]);
    }
  });

  it.each([
    ...['bytes=0-1,5-6', 'bytes=0-1, -1', 'bytes=5-2', 'bytes=', 'bytes=-', 'bytes=a-b'],
    ...['items=0-1', 'bytes 0-1', '0-1', 'bytes=1', 'bytes=--1', 'bytes=0-1;', ''],
  ])('is sent whole, whatever is meant by %j', async (range) => {
    const whole = await get(url);
    const answer = await get(url, { range });
    expect(answer.statusCode).toBe(200);
    expect(answer.rawPayload.equals(whole.rawPayload)).toBe(true);
    expect(answer.headers).not.toHaveProperty('content-range');
    expect(answer.headers['accept-ranges']).toBe('bytes');
  });

  it.each(['bytes=99999999-', 'bytes=99999999-99999999', 'bytes=-0', 'bytes=SIZE-'])(
    'has nothing at %s',
    async (range) => {
      const size = (await get(url)).rawPayload.length;
      const answer = await get(url, { range: range.replace('SIZE', String(size)) });
      expect(answer.statusCode).toBe(416);
      expect(answer.headers['content-range']).toBe(`bytes */${size}`);
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(answer.headers['content-length']).toBe(String(answer.rawPayload.length));
      expect(answer.headers['x-content-type-options']).toBe('nosniff');
      expect(answer.headers).not.toHaveProperty('etag');
      expect(answer.headers).not.toHaveProperty('content-disposition');
      expect(answer.json()).toEqual({
        code: 'RANGE_NOT_SATISFIABLE',
        message: 'The range lies outside the media.',
      });
    },
  );

  it('is sent in part to who has the other part of the same', async () => {
    const { headers } = await get(url);
    const range = 'bytes=1-2';
    expect((await get(url, { range, 'if-range': String(headers.etag) })).statusCode).toBe(206);
    for (const validator of ['"other"', `W/${headers.etag}`, 'nonsense', '*', '']) {
      const answer = await get(url, { range, 'if-range': validator });
      expect(answer.statusCode).toBe(200);
      expect(answer.headers).not.toHaveProperty('content-range');
    }
  });

  it('never has an outdated part refused', async () => {
    const headers = { range: 'bytes=99999999-', 'if-range': '"other"' };
    expect((await get(url, headers)).statusCode).toBe(200);
  });
});

describe('If-Range by date', () => {
  it.each(['/icons/1/ab.webp?size=64', '/attachments/1/2/clip.mp4'])(
    'is exact: %s',
    async (url) => {
      const statusOf = async (date: string) =>
        (await get(url, { range: 'bytes=0-1', 'if-range': date })).statusCode;
      expect(await statusOf('Thu, 29 Feb 2024 12:30:15 GMT')).toBe(206);
      expect(await statusOf('Thu, 29 Feb 2024 12:30:14 GMT')).toBe(200);
      expect(await statusOf('Thu, 29 Feb 2024 12:30:16 GMT')).toBe(200);
    },
  );
});

describe('the work behind a range', () => {
  it('is one render, however many parts are asked for', async () => {
    const before = app.renderer.renders;
    for (const range of ['bytes=0-9', 'bytes=10-19', 'bytes=-5']) {
      await get('/icons/1/ab.webp?size=20', { range });
    }
    expect(app.renderer.renders - before).toBe(1);
  });

  it('of a passthrough attachment is never a render', async () => {
    const before = app.renderer.renders;
    await get('/attachments/1/2/clip.mp4', { range: 'bytes=100-' });
    expect(app.renderer.renders).toBe(before);
  });
});

describe('an empty attachment', () => {
  it.each([
    ['bytes=0-', 416],
    ['bytes=0-0', 416],
    ['bytes=-0', 416],
    ['bytes=-5', 200],
  ])('asked for %s is a %i', async (range, status) => {
    const answer = await get('/attachments/1/2/empty', { range });
    expect(answer.statusCode).toBe(status);
    if (status === 416) expect(answer.headers['content-range']).toBe('bytes */0');
    else expect(answer.headers['content-length']).toBe('0');
  });
});

describe('the time that a part takes the origin', () => {
  it('is told, the second read of it included', async () => {
    const originals = new MemoryOrigin();
    originals.put('attachments/1/2/clip.mp4', samples.mp4);
    const slow: Origin = {
      read: (key, options) => {
        timed.clock.advance(100);
        return originals.read(key, options);
      },
    };
    const timed = await createTestApp({ origin: slow });
    onTestFinished(() => timed.close());
    const url = '/attachments/1/2/clip.mp4';
    const originMs = async (range: string): Promise<string> => {
      const { statusCode, headers } = await timed.server.inject({ url, headers: { range } });
      expect(statusCode).toBe(206);
      return String(headers['server-timing']);
    };
    expect(await originMs('bytes=0-9')).toBe('origin;dur=100');
    expect(await originMs(`bytes=${samples.mp4.length - 9}-`)).toBe('origin;dur=200');
    expect(originals.reads.get('attachments/1/2/clip.mp4')).toBe(3);
  });
});
