import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTestApp, samples, type TestApp } from '../../support/test-app.ts';

const lastModified = new Date('2024-02-29T12:30:15.750Z');
const asset = '/icons/1/ab.webp?size=16';
const attachment = '/attachments/1/2/photo.png?width=20&format=webp';

let app: TestApp;
let origin: string;

beforeEach(async () => {
  app = await createTestApp();
  app.originals.put('icons/1/ab', samples.jpeg, lastModified);
  app.originals.put('attachments/1/2/photo.png', samples.png);
  origin = `http://127.0.0.1:${await app.listen()}`;
});
afterEach(() => app.close());

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** What differs from answer to answer, and what belongs to the connection. */
const PASSING = new Set(['date', 'connection', 'keep-alive', 'server-timing']);

function comparable(headers: Iterable<[string, unknown]>): Record<string, string> {
  return Object.fromEntries(
    [...headers].filter(([name]) => !PASSING.has(name)).map(([name, value]) => [name, `${value}`]),
  );
}

const REQUEST_ID = { 'x-request-id': 'id.of-the_test' };

/** Over a connection, where plain hits take the short way. */
async function ask(path: string, init: RequestInit = {}): Promise<Answer> {
  const answer = await fetch(origin + path, {
    ...init,
    headers: { ...REQUEST_ID, ...init.headers },
  });
  const body = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, headers: comparable(answer.headers), body };
}

/** By Fastify, past the short way. */
async function inject(path: string, { method = 'GET', headers = {} }: RequestInit = {}) {
  const answer = await app.server.inject({
    method: method as 'GET' | 'HEAD',
    url: path,
    headers: { ...REQUEST_ID, ...(headers as Record<string, string>) },
  });
  const { statusCode: status, rawPayload: body } = answer;
  return { status, headers: comparable(Object.entries(answer.headers)), body };
}

describe('a hit that takes the short way', () => {
  it.each([
    ['an asset', asset, {}],
    ['an attachment with a name', attachment, {}],
    ['a HEAD', asset, { method: 'HEAD' }],
    [
      'a client that has it, by date',
      asset,
      { headers: { 'if-modified-since': lastModified.toUTCString() } },
    ],
    ['a client that has any', asset, { headers: { 'if-none-match': '*' } }],
    ['a client that has another', asset, { headers: { 'if-none-match': '"x"' } }],
    ['a HEAD of one that has it', asset, { method: 'HEAD', headers: { 'if-none-match': '*' } }],
    ['a range', asset, { headers: { range: 'bytes=2-9' } }],
    ['an impossible range', asset, { headers: { range: 'bytes=999999-' } }],
    ['a condition without a range', asset, { headers: { 'if-range': '"x"' } }],
  ])('is what it is the usual way: %s', async (_, path, init: RequestInit) => {
    expect((await ask(path)).headers['cache-status']).toBe('darkroom; fwd=miss; stored');
    // The first hit is one the usual way.
    expect((await ask(path)).headers['cache-status']).toBe('darkroom; hit');
    const [short, usual] = [await ask(path, init), await inject(path, init)];
    expect(short).toEqual(usual);
    expect(short.headers).toMatchObject({ 'cache-status': 'darkroom; hit', ...REQUEST_ID });
    expect(app.renderer.renders).toBe(1);
  });

  it('tells how long the look into the memory took, and enters no other stage', async () => {
    for (let time = 0; time < 2; time += 1) await ask(asset);
    const timing = (await fetch(origin + asset)).headers.get('server-timing') ?? '';
    expect(timing).toMatch(/^store;dur=[\d.]+$/);
  });

  it('has an id only where its client has one: no line of the log could be found by another', async () => {
    for (let time = 0; time < 2; time += 1) await ask(asset);
    const { headers } = await fetch(origin + asset);
    expect(headers.get('cache-status')).toBe('darkroom; hit');
    expect(headers.has('x-request-id')).toBe(false);
    expect((await ask(asset)).headers).toMatchObject(REQUEST_ID);
  });

  it('is one only as long as the original is known to be the same', async () => {
    await ask(asset);
    const first = await ask(asset);
    app.clock.advance(299_999);
    expect((await ask(asset)).headers['cache-status']).toBe('darkroom; hit');
    app.clock.advance(1);
    expect((await ask(asset)).headers['cache-status']).toBe('darkroom; fwd=stale; fwd-status=304');
    app.originals.put('icons/1/ab', samples.png, lastModified);
    app.clock.advance(300_000);
    const changed = await ask(asset);
    expect(changed.headers.etag).not.toBe(first.headers.etag);
    expect(changed.body.equals(first.body)).toBe(false);
    expect((await ask(asset)).body.equals(changed.body)).toBe(true);
    app.originals.delete('icons/1/ab');
    app.clock.advance(300_000);
    expect((await ask(asset)).status).toBe(404);
    expect((await ask(asset)).status).toBe(404);
  });

  it('is found by what it asks for, however it is written', async () => {
    await ask(asset);
    for (const path of [
      '/icons/1/ab.webp?size=16&quality=high',
      '/icons/1/%61b.webp?size=16&v=1',
    ]) {
      for (let time = 0; time < 3; time += 1) {
        expect((await ask(path)).headers['cache-status']).toBe('darkroom; hit');
      }
    }
    expect((await ask('/icons/1/ab.webp?size=17')).status).toBe(400);
    expect((await ask(asset, { method: 'POST' })).status).toBe(405);
  });
});
