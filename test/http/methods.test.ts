import { beforeAll, describe, expect, it } from 'vitest';
import { type Ask, createClient } from '../support/http/http-client.ts';
import { sendBytes } from '../support/http/raw-http.ts';
import { readResponses } from '../support/http/wire-response.ts';
import { samples, shareTestApp } from '../support/test-app.ts';

const app = shareTestApp();
let client: Ask;

beforeAll(async () => {
  app.originals.put('icons/1/ab', samples.jpeg, new Date('2024-01-02T03:04:05Z'));
  app.originals.put('icons/2/text', samples.text);
  app.originals.put('attachments/1/2/p.png', samples.png);
  app.originals.put('attachments/1/2/🎉.html', samples.html);
  app.originals.put('attachments/1/2/empty', Buffer.alloc(0));
  // One connection for all, so that what a request leaves behind spoils the next.
  client = createClient(await app.listen(), { maxSockets: 1 });
});

/** Over a real connection: `inject` would not notice a body after a HEAD. */
async function ask(method: string, path: string, sent = {}, text = '') {
  const { status, headers, body } = await client(path, { method, headers: sent, body: text });
  const joined = Object.entries(headers).map(([name, lines]) => [name, lines.join(', ')] as const);
  return { status, body, headers: Object.fromEntries(joined) };
}

/** The headers without what differs from one response to the next of the same request. */
function lasting({ headers: all }: Awaited<ReturnType<typeof ask>>): object {
  const { date: _, 'x-request-id': __, ...headers } = all;
  return { ...headers, 'server-timing': headers['server-timing']?.replace(/dur=[\d.]+/g, 'dur') };
}

describe('HEAD', () => {
  it.each([
    ['a rendered asset', '/icons/1/ab.webp?size=32', 200],
    ['an asset passed through', '/icons/1/ab.jpg?size=480&quality=lossless', 200],
    ['a transformed attachment', '/attachments/1/2/p.png?width=16', 200],
    ['a passthrough attachment', '/attachments/1/2/p.png', 200],
    ['an attachment to be saved', '/attachments/1/2/%F0%9F%8E%89.html', 200],
    ['an empty attachment', '/attachments/1/2/empty', 200],
    ['a default avatar', '/avatars/3.png', 200],
    ['a wrong request', '/avatars/x/ab.bmp?size=63', 400],
    ['no template', '/nothing', 404],
    ['a missing original', '/icons/9/ab.png', 404],
    ['a missing attachment', '/attachments/9/9/a', 404],
    ['no image', '/icons/2/text.png', 415],
  ])('has the headers of GET and no body: %s', async (_, path, status) => {
    await ask('GET', path); // so that both find the same in the store
    const get = await ask('GET', path);
    const head = await ask('HEAD', path);
    expect(get.status).toBe(status);
    expect(head.status).toBe(status);
    expect(lasting(head)).toEqual(lasting(get));
    expect(get.headers['content-length']).toBe(String(get.body.length));
    expect(head.body.length).toBe(0);
  });

  it('works on a cold server too, and then costs one transform for both', async () => {
    const before = app.renderer.renders;
    const head = await ask('HEAD', '/icons/1/ab.png?size=20');
    expect(head.headers['cache-status']).toBe('darkroom; fwd=miss; stored');
    const get = await ask('GET', '/icons/1/ab.png?size=20');
    expect(get.headers['content-length']).toBe(head.headers['content-length']);
    expect(get.headers.etag).toBe(head.headers.etag);
    expect(app.renderer.renders - before).toBe(1);
  });

  it('is a 304 like GET', async () => {
    const { headers } = await ask('GET', '/icons/1/ab.webp?size=32');
    const conditions = { 'if-none-match': headers.etag };
    const get = await ask('GET', '/icons/1/ab.webp?size=32', conditions);
    const head = await ask('HEAD', '/icons/1/ab.webp?size=32', conditions);
    expect([get.status, head.status]).toEqual([304, 304]);
    expect(lasting(head)).toEqual(lasting(get));
  });

  it.each(['/icons/1/ab.webp?size=32', '/attachments/1/2/p.png', '/avatars/3.png'])(
    'knows no ranges: %s',
    async (path) => {
      const whole = await ask('HEAD', path);
      for (const range of ['bytes=0-3', 'bytes=999999-']) {
        const part = await ask('HEAD', path, { range });
        expect(part.status).toBe(200);
        expect(part.headers['content-length']).toBe(whole.headers['content-length']);
        expect(part.headers).not.toHaveProperty('content-range');
      }
    },
  );
});

describe('OPTIONS', () => {
  const allowed = {
    allow: 'GET, HEAD, OPTIONS',
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, HEAD, OPTIONS',
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'cross-origin',
  };

  it.each(['/icons/1/ab.webp', '/icons/9/missing.png', '/attachments/1/2/p.png', '/avatars/3.png'])(
    'says what may be done with %s, and reads nothing',
    async (path) => {
      const reads = [...app.originals.reads];
      const { status, headers, body } = await ask('OPTIONS', path, {
        origin: 'https://app.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization, range',
      });
      expect(status).toBe(204);
      expect(body.length).toBe(0);
      expect(headers).toMatchObject(allowed);
      expect(headers['access-control-allow-headers']).toMatch(/\*.*authorization/i);
      expect(headers).not.toHaveProperty('content-length');
      expect([...app.originals.reads]).toEqual(reads);
    },
  );

  it.each([
    ['text/plain', 'text'],
    ['application/json', '{'],
    ['application/json', ''],
    ['application/x-unheard-of', 'x'.repeat(100)],
    ['???', 'x'],
    ['', 'x'],
  ])('does not care for a body of type %j', async (type, text) => {
    const headers = { 'content-type': type, 'content-length': text.length };
    const { status, headers: received } = await ask('OPTIONS', '/icons/1/ab.webp', headers, text);
    expect(status).toBe(204);
    expect(received).toMatchObject(allowed);
    expect((await ask('GET', '/avatars/0.png')).status).toBe(200);
    expect(app.log.errors).toEqual([]);
  });

  it('knows no unknown paths', async () => {
    expect((await ask('OPTIONS', '/nothing')).status).toBe(404);
  });
});

describe('any other method', () => {
  const methods = ['POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND', 'PURGE', 'QUERY', 'LOCK'];
  const bodies = [
    ['no body', {}, ''],
    ['JSON', { 'content-type': 'application/json' }, '{"a":1}'],
    ['broken JSON', { 'content-type': 'application/json' }, '{'],
    ['an unknown type', { 'content-type': 'application/x-unheard-of' }, 'body'],
    ['a wrong type', { 'content-type': '???' }, 'body'],
    ['no type', {}, 'body'],
  ] as const;

  it.each(
    methods.flatMap((method) => bodies.map(([what, type, body]) => ({ method, what, type, body }))),
  )(
    '$method with $what is a 405 on a known path, a 404 elsewhere',
    async ({ method, type, body }) => {
      const headers = { ...type, ...(body !== '' && { 'content-length': String(body.length) }) };
      for (const path of ['/icons/1/ab.webp', '/avatars/3.png', '/attachments/1/2/p.png']) {
        const response = await app.send(method, path, headers, body);
        expect(response.status).toBe(405);
        expect(response.headers.allow).toBe('GET, HEAD, OPTIONS');
        expect(response.headers['cache-control']).toBe('no-store');
        expect(response.headers['access-control-allow-origin']).toBe('*');
        expect(response.headers['x-content-type-options']).toBe('nosniff');
        expect(JSON.parse(response.body.toString())).toEqual({
          code: 'METHOD_NOT_ALLOWED',
          message: 'The method is not allowed; use GET, HEAD or OPTIONS.',
        });
      }
      const unknown = await app.send(method, '/nothing', headers, body);
      expect(unknown.status).toBe(404);
      expect(unknown.headers).not.toHaveProperty('allow');
      expect(JSON.parse(unknown.body.toString())).toMatchObject({ code: 'NOT_FOUND' });
    },
  );

  it('is a 405 even where the values of the path are wrong', async () => {
    expect((await ask('POST', '/icons/x/ab.bmp')).status).toBe(405);
  });
});

describe('a method that is on no list', () => {
  const GONE = { connection: 'close', allow: 'GET, HEAD, OPTIONS' };

  it.each(['BREW', 'get', 'GETS', 'G', "!#$%&'*+.^_`|~-9"])(
    'is refused as such: %s',
    async (method) => {
      const response = await app.send(method, '/icons/1/ab.webp?size=16');
      expect(response).toMatchObject({ status: 405, headers: { ...GONE } });
      expect(JSON.parse(response.body.toString())).toMatchObject({ code: 'METHOD_NOT_ALLOWED' });
      expect(Date.parse(response.headers.date ?? '')).toBeGreaterThan(Date.now() - 60_000);
      expect(response.headers.date).toMatch(/^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/);
      expect((await app.send(method, '/nothing')).status).toBe(404);
    },
  );

  it('is refused after the responses to what came before it', async () => {
    const before = 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n';
    const brew = 'BREW /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n';
    const statuses = async (...requests: string[]): Promise<string[]> => {
      const bytes = await sendBytes(await app.listen(), requests.join(''));
      return readResponses(bytes).map(({ status }) => String(status));
    };
    expect(await statuses(before, before, brew, before)).toEqual(['200', '200', '405']);
    expect(await statuses('\r\n', brew)).toEqual(['405']);
    const body = 'POST /avatars/0.png HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\r\n';
    expect(await statuses(body, brew)).toEqual(['405', '405']);
  });
});

describe('a script of another site', () => {
  it('may read when to try again, and what its request is called in the log', async () => {
    for (const path of ['/icons/1/ab.webp?size=16', '/avatars/3.png', '/nothing']) {
      const { headers } = await ask('GET', path, { 'X-Request-Id': 'one' });
      const exposed = String(headers['access-control-expose-headers']).split(', ');
      expect(exposed).toEqual(expect.arrayContaining(['Retry-After', 'X-Request-Id', 'ETag']));
      expect(headers['x-request-id']).toBe('one');
    }
  });
});
