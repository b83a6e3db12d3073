import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const lastModified = new Date('2024-02-29T12:30:15.750Z');
const lastModifiedText = 'Thu, 29 Feb 2024 12:30:15 GMT';

let app: TestApp;
let origin: MemoryOrigin;
/** How many bytes were taken out of the bodies that the origin gave. */
let bytesTaken: number;
let bodies: Readable[];

beforeEach(async () => {
  bytesTaken = 0;
  bodies = [];
  origin = new MemoryOrigin();
  origin.put('icons/1/ab', samples.jpeg, lastModified);
  origin.put('attachments/1/2/p.jpg', samples.jpeg, lastModified);
  origin.alter = (object) => {
    const body = Readable.from(meter(object.body), { objectMode: false, highWaterMark: 1 });
    bodies.push(body);
    return { ...object, body };
  };
  app = await useTestApp({ origin });
});

async function* meter(source: AsyncIterable<Buffer>) {
  for await (const chunk of source) {
    bytesTaken += chunk.length;
    yield chunk;
  }
}

const get: TestApp['get'] = (url, headers) => app.get(url, headers);

/** The entity tag of a response, learnt from a server of its own. */
async function etagOf(url: string): Promise<string> {
  const other = await useTestApp({ origin });
  return String((await other.get(url)).headers.etag);
}

const cases = [
  ['a rendered asset', '/icons/1/ab.webp?size=16'],
  ['an asset passed through', '/icons/1/ab.jpg?size=480&quality=lossless'],
  ['a transformed attachment', '/attachments/1/2/p.jpg?width=16'],
  ['a passthrough attachment', '/attachments/1/2/p.jpg'],
  ['a default avatar', '/avatars/3.png'],
] as const;

describe.each(cases)('%s', (_, url) => {
  it('has a strong entity tag, the same on every server', async () => {
    const { headers } = await get(url);
    expect(headers.etag).toMatch(/^"[\x21\x23-\x7e]{16,}"$/);
    expect(headers.etag).toBe(await etagOf(url));
  });

  it('is not sent again to a client that has it, by whatever tag', async () => {
    const full = await get(url);
    const etag = String(full.headers.etag);
    for (const list of [etag, `W/${etag}`, `"x", ${etag} ,W/"y"`, '*']) {
      const response = await get(url, { 'if-none-match': list });
      expect(response.statusCode).toBe(304);
      expect(response.rawPayload.length).toBe(0);
      for (const name of [
        'etag',
        'cache-control',
        'last-modified',
        'access-control-allow-origin',
      ]) {
        expect(response.headers[name]).toBe(full.headers[name]);
      }
      for (const name of ['content-length', 'content-type', 'content-encoding']) {
        expect(response.headers).not.toHaveProperty(name);
      }
    }
    for (const list of ['"other"', 'nonsense', '']) {
      expect((await get(url, { 'if-none-match': list })).statusCode).toBe(200);
    }
  });

  it('is not taken for current by a range', async () => {
    const { headers } = await get(url);
    const conditions = { 'if-none-match': String(headers.etag), range: 'bytes=0-3' };
    expect((await get(url, conditions)).statusCode).toBe(304);
    expect((await get(url, { ...conditions, 'if-none-match': '"x"' })).statusCode).toBe(206);
  });
});

/** Those that have a date, and are read from the origin. */
const originals = cases.filter(([, url]) => url !== '/avatars/3.png');

describe('If-Modified-Since', () => {
  it.each(originals)(
    'is a 304 from the second of the change on, unless there is If-None-Match: %s',
    async (_, url) => {
      expect((await get(url)).headers['last-modified']).toBe(lastModifiedText);
      const responses = await Promise.all(
        [
          lastModifiedText,
          'Fri, 01 Mar 2024 00:00:00 GMT',
          'Thu, 29 Feb 2024 12:30:14 GMT',
          'x',
        ].map((since) => get(url, { 'if-modified-since': since })),
      );
      expect(responses.map(({ statusCode }) => statusCode)).toEqual([304, 304, 200, 200]);
      const both = { 'if-none-match': '"x"', 'if-modified-since': lastModifiedText };
      expect((await get(url, both)).statusCode).toBe(200);
    },
  );

  it('is no matter of default avatars, which have no date', async () => {
    const { statusCode, headers } = await get('/avatars/3.png', {
      'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT',
    });
    expect(statusCode).toBe(200);
    expect(headers).not.toHaveProperty('last-modified');
  });
});

describe('a cold server', () => {
  it.each(originals)('responds 304 without rendering or reading a body: %s', async (name, url) => {
    const isPassthrough = name === 'a passthrough attachment';
    const etag = await etagOf(url);
    bytesTaken = 0;
    origin.reads.clear();
    for (const [conditions, cacheStatus] of [
      [{ 'if-none-match': etag }, isPassthrough ? 'darkroom; fwd=bypass' : 'darkroom; fwd=miss'],
      // What the origin said just now is good for a while; of what is kept, that is.
      [
        { 'if-modified-since': lastModifiedText },
        isPassthrough ? 'darkroom; fwd=bypass' : 'darkroom; hit',
      ],
    ] as const) {
      const { statusCode, headers } = await get(url, conditions);
      expect(statusCode).toBe(304);
      expect(headers['server-timing']).not.toMatch(/queue|render/);
      expect(headers['cache-status']).toBe(cacheStatus);
    }
    expect(app.renderer.renders).toBe(0);
    expect([...origin.reads.values()]).toEqual([isPassthrough ? 2 : 1]);
    // Of a passthrough attachment the first bytes are read, twice here, which tell its type.
    expect(bytesTaken).toBe(url === '/attachments/1/2/p.jpg' ? 2 * 4100 : 0);
    expect(bodies.every(({ destroyed }) => destroyed)).toBe(true);
  });

  it('gives a client that has it and one that has not their own, from one read', async () => {
    const url = '/icons/1/ab.webp';
    const etag = await etagOf(url);
    origin.reads.clear();
    const [current, full, late] = await Promise.all([
      get(url, { 'if-none-match': etag }),
      get(url),
      get(url, { 'if-none-match': etag }),
    ]);
    expect([current.statusCode, full.statusCode, late.statusCode]).toEqual([304, 200, 304]);
    expect([...origin.reads.values()]).toEqual([1]);
    expect(app.renderer.renders).toBe(1);
  });

  it('is a 404 where the original is missing', async () => {
    origin.delete('icons/1/ab');
    origin.delete('attachments/1/2/p.jpg');
    for (const url of ['/icons/1/ab.webp', '/attachments/1/2/p.jpg']) {
      expect((await get(url, { 'if-none-match': '*' })).statusCode).toBe(404);
    }
  });
});

describe('an asterisk is any response that there is', () => {
  it('is none of what was never made, and cannot be', async () => {
    origin.put('attachments/1/2/a.txt', samples.text, lastModified);
    const url = '/attachments/1/2/a.txt?width=10';
    for (const list of ['*', ' * ']) {
      const { statusCode, headers } = await get(url, { 'if-none-match': list });
      expect(statusCode).toBe(415);
      expect(headers).not.toHaveProperty('etag');
    }
    expect((await get(url)).statusCode).toBe(415);
  });

  it('is met as soon as there is one', async () => {
    const url = '/icons/1/ab.webp?size=16';
    const response = await get(url, { 'if-none-match': '*' });
    expect(response.statusCode).toBe(304);
    expect(response.headers['cache-status']).toBe('darkroom; fwd=miss; stored');
    expect(app.renderer.renders).toBe(1);
    const again = await get(url, { 'if-none-match': '*' });
    expect(again.statusCode).toBe(304);
    expect(again.headers.etag).toBe(response.headers.etag);
    expect(again.headers['cache-status']).toBe('darkroom; hit');
    expect(app.renderer.renders).toBe(1);
  });

  it('is met by what is known, without a body, once its state is confirmed', async () => {
    const url = '/icons/1/ab.webp?size=16';
    await get(url);
    app.clock.advance(300_000);
    const response = await get(url, { 'if-none-match': '*' });
    expect(response.statusCode).toBe(304);
    expect(response.headers['cache-status']).toBe('darkroom; fwd=stale; fwd-status=304');
    expect(app.renderer.renders).toBe(1);
  });
});

describe('entity tags', () => {
  it('differ between canonical requests and between originals, and agree otherwise', async () => {
    const tagOf = async (url: string) => (await get(url)).headers.etag;
    origin.put('icons/2/ab', samples.png);
    origin.put('icons/3/ab', samples.jpeg);
    const urls = [
      ...['/icons/1/ab.webp', '/icons/1/ab.png', '/icons/1/ab.webp?size=16', '/icons/2/ab.webp'],
      ...['/icons/1/ab.webp?quality=low', '/icons/3/ab.webp', '/attachments/1/2/p.jpg'],
      ...['/attachments/1/2/p.jpg?width=16', '/avatars/0.png', '/avatars/1.png'],
    ];
    const tags = await Promise.all(urls.map(tagOf));
    expect(new Set(tags).size).toBe(urls.length);
    expect(await tagOf('/icons/1/a_ab.webp?v=1&size=128')).toBe(tags[0]);
  });
});
