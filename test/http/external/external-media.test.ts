import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { beforeEach, describe, expect, test } from 'vitest';
import { type ExternalApp, SITE, useExternalApp } from '../../support/sites/external-app.ts';
import { samples } from '../../support/test-app.ts';

let app: ExternalApp;

beforeEach(async () => {
  app = await useExternalApp();
  app.site.serve('/cat.jpg', samples.jpeg, { 'content-type': 'image/jpeg', etag: '"one"' });
});

describe('a picture of another site', () => {
  test('is rendered as an attachment is, and fetched once', async () => {
    const response = await app.ask('/cat.jpg', 'width=50&format=webp');
    expect(response.status).toBe(200);
    expect(response.header('content-type')).toBe('image/webp');
    expect((await sharp(response.body).metadata()).width).toBe(50);
    expect(response.header('cache-control')).toBe('public, max-age=3600');
    expect(response.header('content-disposition')).toBe('');
    expect(response.header('etag')).toMatch(/^"[\w-]{22}"$/);
    const again = await app.ask('/cat.jpg', 'width=50&format=webp');
    expect(again.header('cache-status')).toBe('darkroom; hit');
    expect(again.header('etag')).toBe(response.header('etag'));
    const other = await app.ask('/cat.jpg', 'width=40');
    expect(other.status).toBe(200);
    expect(app.site.requests).toHaveLength(1);
  });

  test('is asked for with headers of ours alone', async () => {
    await app.ask('/cat.jpg', 'width=50', {
      headers: {
        cookie: 'a=b',
        referer: 'https://chat.example/',
        'x-forwarded-for': '9.9.9.9',
        authorization: 'secret',
        'user-agent': 'a browser',
        accept: 'text/html',
      },
    });
    const { headers, method, url } = app.site.requests[0] ?? {};
    expect({ ...headers, 'user-agent': '' }).toEqual({
      host: `${SITE}:${app.site.port}`,
      connection: 'keep-alive',
      'user-agent': '',
      accept: 'image/*, video/*, audio/*',
      'accept-encoding': 'identity',
      'cdn-loop': 'darkroom',
    });
    expect(headers?.['user-agent']).toMatch(/^Darkroom\//);
    expect([method, url]).toEqual(['GET', '/cat.jpg']);
  });

  test('is passed on as it is without a parameter', async () => {
    const response = await app.ask('/cat.jpg');
    expect(response.status).toBe(200);
    expect(response.body.equals(samples.jpeg)).toBe(true);
    expect(response.header('content-type')).toBe('image/jpeg');
    expect(response.header('content-length')).toBe(String(samples.jpeg.length));
    expect(response.header('accept-ranges')).toBe('bytes');
    expect(response.header('cache-control')).toBe('public, max-age=3600');
    expect(response.header('cache-status')).toBe('darkroom; fwd=bypass');
    const { status } = await app.ask('/cat.jpg', '', {
      headers: { 'if-none-match': response.header('etag') },
    });
    expect(status).toBe(304);
  });

  test('that is not there is a 404', async () => {
    for (const query of ['', 'width=50']) {
      const response = await app.ask('/nothing.jpg', query);
      expect(response.status).toBe(404);
      expect(JSON.parse(response.body.toString()).code).toBe('UNKNOWN_MEDIA');
    }
  });
});

/** Serves a body with ranges, as a site should. */
function serveRanges(
  path: string,
  body: Buffer,
  etag = `"${createHash('md5').update(body).digest('hex')}"`,
): void {
  app.site.handlers.set(path, ({ headers }, response) => {
    const [, first = '', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
    const applies = headers['if-range'] === undefined || headers['if-range'] === etag;
    if (first === '' || !applies) {
      response.writeHead(200, { etag, 'content-length': body.length }).end(body);
      return;
    }
    const end = Math.min(last === '' ? Infinity : Number(last), body.length - 1);
    const part = body.subarray(Number(first), end + 1);
    const range = `bytes ${first}-${end}/${body.length}`;
    response
      .writeHead(206, { etag, 'content-length': part.length, 'content-range': range })
      .end(part);
  });
}

describe('a range of what is on another site', () => {
  const video = Buffer.concat([samples.mp4, Buffer.alloc(200_000, 7)]);

  test.each([
    ['bytes=0-99', 0, 99],
    ['bytes=0-99999', 0, 99_999],
    ['bytes=0-', 0, video.length - 1],
    ['bytes=100000-100099', 100_000, 100_099],
    ['bytes=-50', video.length - 50, video.length - 1],
    ['bytes=5000-', 5_000, video.length - 1],
    ['bytes=0-0', 0, 0],
  ])('%s', async (range, first, last) => {
    serveRanges('/film.mp4', video);
    for (let round = 0; round < 2; round += 1) {
      const response = await app.ask('/film.mp4', '', { headers: { range } });
      expect(response.status).toBe(206);
      expect(response.header('content-range')).toBe(`bytes ${first}-${last}/${video.length}`);
      expect(response.header('content-type')).toBe('video/mp4');
      expect(response.body.equals(video.subarray(first, last + 1))).toBe(true);
    }
    // The first bytes were asked for once, and not for themselves where they are wanted.
    const [prefix, ...parts] = app.site.requests.map(({ headers }) => headers);
    expect(prefix?.range).toBe(first === 0 && last > 4_099 ? range : 'bytes=0-4099');
    expect(parts.every((headers) => headers['if-range'] !== undefined)).toBe(true);
    expect(parts).toHaveLength(first === 0 ? (last > 4_099 ? 1 : 0) : 2);
  });

  test('is the whole where the site has replaced it since', async () => {
    serveRanges('/film.mp4', video);
    const headers = { range: 'bytes=100000-100099' };
    expect((await app.ask('/film.mp4', '', { headers })).status).toBe(206);
    const other = Buffer.concat([samples.mp4, Buffer.alloc(200_000, 8)]);
    serveRanges('/film.mp4', other);
    const response = await app.ask('/film.mp4', '', { headers });
    expect(response.status).toBe(200);
    expect(response.body.equals(other)).toBe(true);
  });

  test.each([['W/"weak"'], ['']])('is the whole where the validator is %j', async (etag) => {
    // The beginning that was asked for is let go of before: it would be a second one.
    app = await useExternalApp({ limits: { maxStreams: 1 } });
    serveRanges('/film.mp4', video, etag);
    const response = await app.ask('/film.mp4', '', { headers: { range: 'bytes=0-99999' } });
    expect(response.status).toBe(200);
    expect(response.header('etag')).toBe('');
    expect(response.header('accept-ranges')).toBe('none');
    expect(response.body.equals(video)).toBe(true);
  });

  test('a HEAD is a GET whose body is dropped', async () => {
    serveRanges('/film.mp4', video);
    const response = await app.ask('/film.mp4', '', { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(response.header('content-length')).toBe(String(video.length));
    expect(response.header('content-type')).toBe('video/mp4');
    expect(app.site.requests.map(({ method }) => method)).toEqual(['GET']);
  });
});

describe('502', () => {
  test('is the same for whatever may not be fetched, or cannot be', async () => {
    app.site.handlers.set('/broken', (_request, response) => response.writeHead(500).end());
    app.site.handlers.set('/unasked', (_request, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-0/1' }).end('x');
    });
    app.site.handlers.set('/packed', (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('x');
    });
    app.resolver.set('evil.test', ['10.0.0.1']);
    app.resolver.set('closed.test', ['127.0.0.1']);
    const urls = [
      ...['/broken', '/unasked', '/packed'].map(app.urlOf),
      `http://evil.test/`,
      `http://127.0.0.2:${app.site.port}/`,
      'http://169.254.169.254/latest/meta-data/',
      'http://closed.test/',
      'http://localhost/',
      'file:///etc/passwd',
      'no url',
    ];
    const responses = [];
    for (const url of urls) {
      for (const query of ['', 'width=50', 'width=60'])
        responses.push(await app.askUrl(url, query));
    }
    const shown = responses.map(({ status, body, headers }) => {
      const { date: _, 'x-request-id': __, ...others } = headers;
      return JSON.stringify({ status, body: body.toString(), others });
    });
    expect(new Set(shown).size).toBe(1);
    const [response] = responses;
    expect(response?.status).toBe(502);
    expect(response?.header('cache-control')).toBe('no-store');
    expect(response?.header('server-timing')).toBe('');
    expect(response?.header('cache-status')).toBe('darkroom; fwd=miss');
  });

  test('is what a request gets that has come through us before', async () => {
    for (const loop of ['darkroom', 'other; a="x, darkroom", Darkroom;v=1', 'a,darkroom']) {
      const response = await app.ask('/cat.jpg', 'width=50', { headers: { 'cdn-loop': loop } });
      expect(response.status).toBe(502);
    }
    expect(app.site.requests).toHaveLength(0);
    const other = await app.ask('/cat.jpg', 'width=50', {
      headers: { 'cdn-loop': 'darkroom.example, "darkroom", other; p="darkroom, darkroom"' },
    });
    expect(other.status).toBe(200);
  });

  test('is in the log with the host, the reason and the address', async () => {
    app.resolver.set('evil.test', ['10.0.0.1']);
    await app.askUrl('http://evil.test/', 'width=50');
    const line = app.log.entries.find(
      ({ message }) => message === 'another site was not fetched from',
    );
    expect(line?.details).toMatchObject({ host: 'evil.test', address: '10.0.0.1', why: 'address' });
    await expect.poll(() => app.requests.at(-1)?.host).toBe('evil.test');
  });
});

test('a render of what another site has counts; what is passed on and what is remembered does not', async () => {
  app = await useExternalApp({
    settings: { RATE_LIMIT_REQUESTS: '2', RATE_LIMIT_WINDOW_SECONDS: '86400' },
  });
  for (const path of ['/cat.jpg', '/dog.jpg']) app.site.serve(path, samples.jpeg, { etag: '"1"' });
  for (const width of [40, 50]) {
    expect((await app.ask('/cat.jpg', `width=${width}`)).status).toBe(200);
  }
  const refused = await app.ask('/cat.jpg', 'width=60');
  expect(refused.status).toBe(429);
  expect(refused.header('cache-control')).toBe('no-store');
  // What it costs is known: the site is not asked for that, not even whether it has changed.
  app.clock.advance(3_600_000);
  expect((await app.ask('/cat.jpg', 'width=60')).status).toBe(429);
  expect(app.site.requests).toHaveLength(1);
  // Of another picture it is not.
  expect((await app.ask('/dog.jpg', 'width=60')).status).toBe(429);
  expect(app.site.requests).toHaveLength(2);
  expect((await app.ask('/dog.jpg')).status).toBe(200);
  // It has ended to be current, and is not rendered anew.
  expect((await app.ask('/cat.jpg', 'width=40')).status).toBe(200);
  expect(app.renderer.renders).toBe(2);
});
