import type { Socket } from 'node:net';
import { beforeEach, describe, expect, test } from 'vitest';
import { blockThread } from '../../support/deferred.ts';
import {
  type ExternalApp,
  outcomeOf,
  SITE,
  useExternalApp,
} from '../../support/sites/external-app.ts';
import { trickle, useHostileServer } from '../../support/sites/hostile-server.ts';
import { samples } from '../../support/test-app.ts';

let app: ExternalApp;

beforeEach(async () => {
  app = await useExternalApp();
  app.site.serve('/cat.jpg', samples.jpeg, { 'content-type': 'image/jpeg', etag: '"one"' });
});

// test/surface checks the responses. This file checks the requests to the site.

test('requests external media only with headers of Darkroom', async () => {
  const clientHeaders = {
    cookie: 'a=b',
    referer: 'https://chat.example/',
    'x-forwarded-for': '9.9.9.9',
  };
  const replaced = { authorization: 'secret', 'user-agent': 'a browser', accept: 'text/html' };
  await app.request('/cat.jpg', 'width=50', { headers: { ...clientHeaders, ...replaced } });
  const { headers, method, url } = app.site.requests[0] ?? {};
  expect(headers).toEqual({
    host: `${SITE}:${app.site.port}`,
    connection: 'keep-alive',
    'user-agent': expect.stringMatching(/^Darkroom\//),
    accept: 'image/*, video/*, audio/*',
    'accept-encoding': 'identity',
    'cdn-loop': 'darkroom',
  });
  expect([method, url]).toEqual(['GET', '/cat.jpg']);
});

describe('a range of external media', () => {
  const video = Buffer.concat([samples.mp4, Buffer.alloc(200_000, 7)]);

  test.each([
    // The first bytes are requested once, and not separately if they are part of the range.
    ['bytes=0-99', 'bytes=0-4099'],
    ['bytes=0-4099', 'bytes=0-4099'],
    ['bytes=0-99999', 'bytes=0-99999 bytes=0-99999'],
    ['bytes=0-', `bytes=0- bytes=0-${video.length - 1}`],
    ['bytes=5000-5100', 'bytes=0-4099 bytes=5000-5100 bytes=5000-5100'],
    ['bytes=-50', `bytes=0-4099${` bytes=${video.length - 50}-${video.length - 1}`.repeat(2)}`],
  ])('%s requests %s from the site', async (range, requested) => {
    app.site.serveRanges('/film.mp4', video);
    for (let round = 0; round < 2; round += 1) {
      const response = await app.request('/film.mp4', '', { headers: { range } });
      expect(response.status).toBe(206);
      const [first, last] = (/ (.*)-(.*)\//.exec(response.header('content-range')) ?? []).slice(1);
      expect(response.body.equals(video.subarray(Number(first), Number(last) + 1))).toBe(true);
    }
    const sent = app.site.requests.map(({ headers }) => headers);
    expect(sent.map(({ range }) => range).join(' ')).toBe(requested);
    for (const later of sent.slice(1)) expect(later).toHaveProperty('if-range');
  });

  test('is the complete file if the site has replaced it since', async () => {
    app.site.serveRanges('/film.mp4', video);
    const headers = { range: 'bytes=100000-100099' };
    expect((await app.request('/film.mp4', '', { headers })).status).toBe(206);
    const other = Buffer.concat([samples.mp4, Buffer.alloc(200_000, 8)]);
    app.site.serveRanges('/film.mp4', other, { etag: '"two"' });
    const response = await app.request('/film.mp4', '', { headers });
    expect(response.status).toBe(200);
    expect(response.body.equals(other)).toBe(true);
  });

  test.each([['W/"weak"'], ['']])('is the complete file if the validator is %j', async (etag) => {
    // With a limit of one, the first request must end before the second.
    app = await useExternalApp({ limits: { maxStreams: 1 } });
    app.site.serveRanges('/film.mp4', video, { etag });
    const response = await app.request('/film.mp4', '', { headers: { range: 'bytes=0-99999' } });
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({ 'accept-ranges': ['none'] });
    expect(response.headers).not.toHaveProperty('etag');
    expect(response.body.equals(video)).toBe(true);
  });

  test.each([
    ['before', 0, 504],
    ['after', 50, 'cut'],
  ])('is an error of the site if it stalls %s its first byte', async (_, sentBytes, outcome) => {
    app = await useExternalApp({ limits: { pauseMs: 100 } });
    app.site.serveRanges('/film.mp4', video);
    const headers = { range: 'bytes=100000-100099' };
    const request = () => outcomeOf(app.request('/film.mp4', '', { headers }));
    expect(await request()).toBe(206);
    app.site.handlers.set('/film.mp4', (_request, response) => {
      const range = `bytes 100000-100099/${video.length}`;
      response.writeHead(206, { etag: '"one"', 'content-length': 100, 'content-range': range });
      response.flushHeaders();
      response.write(video.subarray(0, sentBytes));
    });
    expect(await request()).toBe(outcome);
    const details = { code: 'ORIGIN_TIMEOUT', why: 'time' };
    expect(app.log.entries).toMatchObject([{ level: 'warn', details }]);
  });
});

test('a deadline that passes while this process is blocked does not cause a 504', async () => {
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${samples.jpeg.length}\r\n\r\n`;
  const site = await useHostileServer();
  // The response arrives before the deadline can be noticed.
  site.behaviours.set('/answers', (socket) => {
    blockThread(1_600);
    socket.write(head);
    socket.end(samples.jpeg);
  });
  const limits = { firstByteTimeoutMs: 300, headTimeoutMs: 300 };
  const strictApp = await useExternalApp({ ports: [site.port], limits });
  const url = `http://${SITE}:${site.port}/answers`;
  expect(await outcomeOf(strictApp.requestUrl(url, 'width=40'))).toBe(200);
});

test('a site can be slow after a timely first byte, and pause during a complete fetch', async () => {
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${samples.jpeg.length}\r\n\r\n`;
  const half = samples.jpeg.length / 2;
  const [first, rest] = [samples.jpeg.subarray(0, half), samples.jpeg.subarray(half)];
  const slow = await useHostileServer();
  const stalled: Socket[] = [];
  slow.behaviours.set('/trickles', (socket) =>
    trickle(socket, [head.slice(0, 9), head.slice(9, 20), head.slice(20), first, rest], 600),
  );
  slow.behaviours.set('/head', (socket) => socket.write(head));
  slow.behaviours.set('/half', (socket) => {
    socket.write(head);
    socket.write(first);
    stalled.push(socket);
  });
  const request = (by: ExternalApp, path: string, query: string) =>
    outcomeOf(by.requestUrl(`http://${SITE}:${slow.port}${path}`, query));
  const ports = [slow.port];
  const lenientApp = await useExternalApp({ ports, limits: { firstByteTimeoutMs: 1_000 } });
  const strictApp = await useExternalApp({ ports, limits: { pauseMs: 100 } });
  const rendered = request(strictApp, '/half', 'width=40');
  await expect.poll(() => stalled.length).toBe(1);
  const all = [
    ...[request(lenientApp, '/trickles', ''), request(lenientApp, '/trickles', 'width=40')],
    ...[
      request(lenientApp, '/hangs', ''),
      request(strictApp, '/head', ''),
      request(strictApp, '/half', ''),
    ],
  ];
  expect(await Promise.all(all)).toEqual([200, 200, 504, 504, 'cut']);
  stalled[0]?.write(rest);
  expect(await rendered).toBe(200);
});

test('skips an unsolicited 100 (Continue) of a site, also on a reused connection', async () => {
  app.site.handlers.set('/cat.jpg', (_request, response) => {
    response.writeContinue();
    response.writeHead(200, { 'content-length': samples.jpeg.length }).end(samples.jpeg);
  });
  for (const query of ['', 'width=50', '']) {
    expect((await app.request('/cat.jpg', query)).status).toBe(200);
  }
  expect(app.site.countConnections()).toBe(1);
});

describe('a 502', () => {
  test('is the same response for every forbidden or failing URL', async () => {
    app.site.handlers.set('/broken', (_request, response) => response.writeHead(500).end());
    app.resolver.set('evil.test', ['10.0.0.1']);
    app.resolver.set('closed.test', ['127.0.0.1']);
    const shown = new Set<string>();
    const broken = app.urlOf('/broken');
    for (const url of [broken, 'http://evil.test/', 'http://closed.test/', 'no url']) {
      for (const query of ['', 'width=50', 'width=60']) {
        const { status, body, headers } = await app.requestUrl(url, query);
        const { date: _, 'x-request-id': __, ...others } = headers;
        shown.add(JSON.stringify({ status, body: body.toString(), others }));
      }
    }
    expect([...shown]).toEqual([expect.stringMatching(/"status":502.*"darkroom; fwd=miss"/)]);
  });

  test('is the response to a request that has already passed through Darkroom', async () => {
    const request = async (loop: string) =>
      (await app.request('/cat.jpg', 'width=50', { headers: { 'cdn-loop': loop } })).status;
    for (const loop of ['darkroom', 'other; a="x, darkroom", Darkroom;v=1', 'a,darkroom']) {
      expect(await request(loop)).toBe(502);
    }
    expect(app.site.requests).toHaveLength(0);
    expect(await request('darkroom.example, "darkroom", other; p="darkroom, darkroom"')).toBe(200);
  });
});
