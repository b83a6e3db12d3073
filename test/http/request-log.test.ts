import { beforeEach, describe, expect, it } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import type { RequestLine } from '../../src/telemetry/request-log.ts';
import { samples, type TestApp, type TestAppOptions, useTestApp } from '../support/test-app.ts';

const asset = '/icons/1/ab.webp?v=7&size=16';
const canonical = 'icons/1/ab?width=16&height=&format=webp&quality=high&animated=false';

let app: TestApp;

async function start(logged: 'debug' | 'info', options: TestAppOptions = {}): Promise<void> {
  app = await useTestApp({ ...options, logged });
  app.originals.put('icons/1/ab', samples.jpeg);
  app.originals.put('attachments/1/2/a b.txt', samples.text);
}

/** The line of the only request since the last call. */
async function oneLine(): Promise<RequestLine> {
  await expect.poll(() => app.requests).toHaveLength(1);
  const [line] = app.requests.splice(0);
  return line ?? expect.fail('no line');
}

describe('a line for each request', () => {
  beforeEach(() => start('info'));

  it('has the canonical request, what came, from where, and where the time went', async () => {
    const { status, body } = await app.send('GET', asset, { 'X-Request-Id': 'abc-1' });
    expect(status).toBe(200);
    const { stagesMs, ...line } = await oneLine();
    expect(line).toEqual({
      id: 'abc-1',
      method: 'GET',
      resource: 'guild icon',
      asset: canonical,
      status: 200,
      cache: 'miss',
      bytes: body.length,
      durationMs: 0, // by the clock of the tests, which stands still
      client: '127.0.0.1',
    });
    expect(Object.keys(stagesMs)).toEqual(['store', 'origin', 'queue', 'render', 'send']);
  });

  it('is not written for hits, which are most of all requests, whether their target was read before or not', async () => {
    await app.send('GET', asset);
    await oneLine();
    for (let time = 0; time < 3; time += 1) {
      const { headers } = await app.send('GET', asset);
      expect(headers['cache-status']).toBe('darkroom; hit');
    }
    await app.send('GET', '/avatars/0.png');
    app.clock.advance(300_000);
    await app.send('GET', asset);
    expect(await oneLine()).toMatchObject({ status: 200, cache: 'revalidated' });
  });

  it('has originals that are passed on, with the bytes that were sent', async () => {
    const target = '/attachments/1/2/a%20b.txt';
    const headers = { Range: 'bytes=0-9' };
    await app.send('GET', target, headers);
    const passthrough =
      'attachments/1/2/a%20b.txt?width=&height=&format=&quality=lossless&animated=false';
    expect(await oneLine()).toMatchObject({
      resource: 'attachment',
      asset: passthrough,
      status: 206,
      cache: 'bypass',
      bytes: 10,
    });
    await app.send('HEAD', target);
    expect(await oneLine()).toMatchObject({ method: 'HEAD', status: 200, bytes: 0 });
    await app.send('GET', target);
    expect(await oneLine()).toMatchObject({ status: 200, bytes: samples.text.length });
    await app.send('GET', target, { 'If-None-Match': '*' });
    expect(await oneLine()).toMatchObject({ status: 304, bytes: 0 });
  });

  it.each([
    ['GET', '/emojis/1.png', 404, 'UNKNOWN_MEDIA', 'miss', 'custom emoji'],
    ['GET', '/emojis/01.png?size=3', 400, 'INVALID_FORM_BODY', 'none', 'none'],
    ['GET', '/robots.txt', 404, 'NOT_FOUND', 'none', 'none'],
    ['POST', '/emojis/1.png', 405, 'METHOD_NOT_ALLOWED', 'none', 'none'],
    ['PROPFIND', '/emojis/1.png', 405, 'METHOD_NOT_ALLOWED', 'none', 'none'],
    ['OPTIONS', '/emojis/1.png', 204, undefined, 'none', 'none'],
  ])('has errors by their code: %s %s', async (method, target, status, code, cache, resource) => {
    await app.send(method, target);
    expect(await oneLine()).toMatchObject({
      method,
      status,
      cache,
      resource,
      ...(code !== undefined && { code }),
    });
  });

  it('has the beginning of what is no asset', async () => {
    await app.send('GET', `/${'x'.repeat(1_000)}`);
    expect(await oneLine()).toMatchObject({ asset: `/${'x'.repeat(199)}…` });
  });

  it('is one for each of those who share a render', async () => {
    const asked = await Promise.all([1, 2, 3].map(() => app.send('GET', asset)));
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 200]);
    await expect.poll(() => app.requests).toHaveLength(3);
    expect(app.requests.map(({ cache }) => cache).sort()).toEqual([
      'collapsed',
      'collapsed',
      'miss',
    ]);
  });
});

describe('a line for a request that went wrong', () => {
  it('is 499 where the client has gone before there was a response', async () => {
    await start('info', { origin: { read: () => new Promise(() => undefined) } });
    const client = await app.begin(asset);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(app.requests).toEqual([]);
    client.destroy();
    expect(await oneLine()).toMatchObject({ status: 499, bytes: 0, resource: 'guild icon' });
  });

  it('has the id of the line on the error, of which there is one', async () => {
    const cause = new Error('no route');
    const failure = new MediaError('ORIGIN_ERROR', { cause });
    await start('info', { origin: { read: () => Promise.reject(failure) } });
    await app.send('GET', asset, { 'X-Request-Id': 'trace/7' });
    expect(await oneLine()).toMatchObject({ id: 'trace/7', status: 502, code: 'ORIGIN_ERROR' });
    expect(app.log.requestErrors).toMatchObject([{ id: 'trace/7', err: { cause } }]);
  });
});

describe('where hits are wanted as well', () => {
  it('they are logged alike', async () => {
    await start('debug');
    const { body } = await app.send('GET', asset);
    await oneLine();
    const hits: RequestLine[] = [];
    for (const id of ['usual', 'short']) {
      await app.send('GET', asset, { 'X-Request-Id': id });
      hits.push(await oneLine());
    }
    const expected = {
      method: 'GET',
      resource: 'guild icon',
      asset: canonical,
      status: 200,
      cache: 'memory',
      bytes: body.length,
      durationMs: 0,
      stagesMs: { store: 0, send: 0 },
      client: '127.0.0.1',
    };
    expect(hits).toEqual([
      { id: 'usual', ...expected },
      { id: 'short', ...expected },
    ]);
    await app.send('HEAD', asset);
    expect(await oneLine()).toMatchObject({ method: 'HEAD', bytes: 0 });
    await app.send('GET', asset, { 'If-None-Match': '*' });
    expect(await oneLine()).toMatchObject({ status: 304, bytes: 0 });
  });

  const garbage = `<script>${'x'.repeat(9_000)}</script>`;
  it.each([
    ['127.0.0.1', '203.0.113.9', '203.0.113.9'],
    ['true', '203.0.113.9', '203.0.113.9'],
    ['10.0.0.0/8', '203.0.113.9', '127.0.0.1'],
    ['false', '203.0.113.9', '127.0.0.1'],
    // What is no address is no client.
    ['true', garbage, '127.0.0.1'],
    ['true', `${garbage}, 203.0.113.9, 10.0.0.1`, '203.0.113.9'],
    ['true', '\x9b31m, 2001:db8::1', '2001:db8::1'],
    ['true', `fe80::1%${'x'.repeat(9_000)}`, '127.0.0.1'],
    ['true', '203.0.113.9:443', '127.0.0.1'],
    ['127.0.0.1', garbage, '127.0.0.1'],
    ['127.0.0.1, 10.0.0.1', `203.0.113.9, ${garbage}, 10.0.0.1`, '10.0.0.1'],
    ['127.0.0.1, 10.0.0.0/8', '198.51.100.1, 203.0.113.1, 10.1.1.1', '203.0.113.1'],
  ])('with TRUST_PROXY=%s they are logged with the address (%#)', async (...row) => {
    const [TRUST_PROXY, from, client] = row;
    await start('debug', { settings: { TRUST_PROXY } });
    for (const cache of ['miss', 'memory', 'memory', 'memory']) {
      await app.send('GET', asset, { 'X-Forwarded-For': from });
      expect(await oneLine()).toMatchObject({ cache, client });
    }
  });
});

describe('the id of a request', () => {
  beforeEach(() => start('debug'));

  const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

  it.each(['7f3a', 'Root=1-67891233-abcdef012345678912345678', 'a+b/c==:1~x_y.z', 'x'.repeat(128)])(
    'is taken from its sender, and given back: %s',
    async (id) => {
      for (const target of [asset, asset, asset, '/robots.txt', '/avatars/0.png']) {
        const { headers } = await app.send('GET', target, { 'X-Request-Id': id });
        expect(headers['x-request-id']).toBe(id);
        expect(await oneLine()).toMatchObject({ id });
      }
    },
  );

  it.each(['', 'x'.repeat(129), 'a b', 'a"b', '<b>', 'a\u00e9', 'a,b', 'a\tb', '{}'])(
    'is made where there is none of good form: %j',
    async (id) => {
      const seen = new Set<string>();
      for (const target of [asset, asset, asset, '/robots.txt']) {
        const { headers } = await app.send('GET', target, { 'X-Request-Id': id });
        expect(headers['x-request-id']).toMatch(UUID);
        seen.add((await oneLine()).id);
      }
      expect(seen.size).toBe(4);
    },
  );

  it('is made where it comes twice', async () => {
    const client = await app.connect();
    client.write(`HEAD ${asset} HTTP/1.1\r\nHost: a\r\nX-Request-Id: a\r\nX-Request-Id: b\r\n\r\n`);
    expect((await oneLine()).id).toMatch(UUID);
  });
});
