import { beforeAll, describe, expect, it } from 'vitest';
import { samples, shareTestApp, type TestApp, useTestApp } from '../../support/test-app.ts';

const app = shareTestApp();

const lastModified = new Date('2024-02-29T12:30:15.750Z');

beforeAll(() => {
  app.originals.put('icons/1/ab', samples.jpeg, lastModified);
  app.originals.put('attachments/1/2/clip.mp4', samples.mp4, lastModified);
  app.originals.put('attachments/1/2/p.jpg', samples.jpeg, lastModified);
  app.originals.put('attachments/1/2/empty', Buffer.alloc(0));
});

const get: TestApp['get'] = (url, headers) => app.get(url, headers);

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
    ['bytes=100-', (size) => [100, size - 1]],
    ['bytes=-1', (size) => [size - 1, size - 1]],
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

  it.each(['bytes=0-1,5-6', 'bytes=5-2', 'items=0-1', ''])(
    'is sent whole, whatever is meant by %j',
    async (range) => {
      const whole = await get(url);
      const response = await get(url, { range });
      expect(response.statusCode).toBe(200);
      expect(response.rawPayload.equals(whole.rawPayload)).toBe(true);
      expect(response.headers).not.toHaveProperty('content-range');
      expect(response.headers['accept-ranges']).toBe('bytes');
    },
  );

  it.each(['bytes=99999999-', 'bytes=SIZE-'])('has nothing at %s', async (range) => {
    const size = (await get(url)).rawPayload.length;
    const response = await get(url, { range: range.replace('SIZE', String(size)) });
    expect(response.statusCode).toBe(416);
    expect(response.headers['content-range']).toBe(`bytes */${size}`);
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.headers['content-length']).toBe(String(response.rawPayload.length));
    expect(response.headers['x-content-type-options']).toBe('nosniff');
    expect(response.headers).not.toHaveProperty('etag');
    expect(response.headers).not.toHaveProperty('content-disposition');
    expect(response.json()).toEqual({
      code: 'RANGE_NOT_SATISFIABLE',
      message: 'The range lies outside the media.',
    });
  });

  it('is sent in part to a client that has the other part of the same', async () => {
    const { etag, 'last-modified': date = etag } = (await get(url)).headers;
    const range = 'bytes=1-2';
    for (const validator of [etag, date]) {
      expect((await get(url, { range, 'if-range': String(validator) })).statusCode).toBe(206);
    }
    const otherDate = 'Thu, 29 Feb 2024 12:30:16 GMT';
    for (const validator of ['"other"', `W/${etag}`, 'nonsense', '*', '', otherDate]) {
      const response = await get(url, { range, 'if-range': validator });
      expect(response.statusCode).toBe(200);
      expect(response.headers).not.toHaveProperty('content-range');
    }
  });

  it('never has an outdated part refused', async () => {
    const headers = { range: 'bytes=99999999-', 'if-range': '"other"' };
    expect((await get(url, headers)).statusCode).toBe(200);
  });
});

it('parts cost one render, and of a passthrough attachment none', async () => {
  const before = app.renderer.renders;
  for (const range of ['bytes=0-9', 'bytes=-5']) {
    await get('/icons/1/ab.webp?size=20', { range });
    await get('/attachments/1/2/clip.mp4', { range });
  }
  expect(app.renderer.renders - before).toBe(1);
});

describe('an empty attachment', () => {
  it.each([
    ['bytes=0-', 416],
    ['bytes=0-0', 416],
    ['bytes=-0', 416],
    ['bytes=-5', 200],
  ])('asked for %s is a %i', async (range, status) => {
    const response = await get('/attachments/1/2/empty', { range });
    expect(response.statusCode).toBe(status);
    if (status === 416) expect(response.headers['content-range']).toBe('bytes */0');
    else expect(response.headers['content-length']).toBe('0');
  });
});

describe('the time that a part takes the origin', () => {
  it('includes that of its second read', async () => {
    const timed = await useTestApp();
    timed.originals.put('attachments/1/2/clip.mp4', samples.mp4);
    timed.originals.alter = (object) => {
      timed.clock.advance(100);
      return object;
    };
    const url = '/attachments/1/2/clip.mp4';
    const originMs = async (range: string): Promise<string> => {
      const { statusCode, headers } = await timed.get(url, { range });
      expect(statusCode).toBe(206);
      return String(headers['server-timing']);
    };
    expect(await originMs('bytes=0-9')).toBe('origin;dur=100');
    expect(await originMs(`bytes=${samples.mp4.length - 9}-`)).toBe('origin;dur=200');
    expect(timed.originals.reads.get('attachments/1/2/clip.mp4')).toBe(3);
  });
});
