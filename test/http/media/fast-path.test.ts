import { beforeEach, describe, expect, it } from 'vitest';
import { createClient } from '../../support/http/http-client.ts';
import { renewTestApp, samples } from '../../support/test-app.ts';

const lastModified = new Date('2024-02-29T12:30:15.750Z');
const asset = '/icons/1/ab.webp?size=16';
const attachment = '/attachments/1/2/photo.png?width=20&format=webp';
const REQUEST_ID = { 'x-request-id': 'id.of-the_test' };

const app = renewTestApp();

beforeEach(() => {
  app.originals.put('icons/1/ab', samples.jpeg, lastModified);
  app.originals.put('attachments/1/2/photo.png', samples.png);
});

/** What differs between a hit and a miss, and what belongs to the connection. */
const PASSING = new Set(['date', 'connection', 'keep-alive', 'server-timing', 'cache-status']);

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function ask(path: string, asked: Asked = {}) {
  const client = createClient(await app.listen());
  return client(path, { ...asked, headers: { ...REQUEST_ID, ...asked.headers } });
}

/** A response without what passes. */
function lasting({ status, headers, body }: Awaited<ReturnType<typeof ask>>) {
  const kept = Object.entries(headers).filter(([name]) => !PASSING.has(name));
  return { status, headers: Object.fromEntries(kept), body };
}

describe('a hit', () => {
  it.each<[string, string, Asked]>([
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
  ])('gives what a miss has given: %s', async (_, path, asked) => {
    const miss = await ask(path, asked);
    expect(miss.header('cache-status')).toMatch(/^darkroom; fwd=miss/);
    await ask(path);
    // The first hit reads the target, the second one finds it read.
    for (let time = 0; time < 2; time += 1) {
      const hit = await ask(path, asked);
      expect(lasting(hit)).toEqual(lasting(miss));
      expect(hit.header('cache-status')).toBe('darkroom; hit');
      expect(hit.header('server-timing')).toMatch(/^store;dur=[\d.]+$/);
      expect(hit.header('x-request-id')).toBe('id.of-the_test');
    }
    expect(app.renderer.renders).toBeLessThanOrEqual(1);
  });

  it('has an id only where its client has one: no line of the log could be found by another', async () => {
    const client = createClient(await app.listen());
    expect((await client(asset)).header('x-request-id')).not.toBe('');
    for (let time = 0; time < 2; time += 1) {
      const hit = await client(asset);
      expect(hit.header('cache-status')).toBe('darkroom; hit');
      expect(hit.headers).not.toHaveProperty('x-request-id');
    }
  });

  it('of a target that was read before is checked like any other', async () => {
    for (let time = 0; time < 3; time += 1) await ask(asset);
    app.clock.advance(300_000);
    expect((await ask(asset)).header('cache-status')).toBe('darkroom; fwd=stale; fwd-status=304');
    app.originals.delete('icons/1/ab');
    app.clock.advance(300_000);
    expect((await ask(asset)).status).toBe(404);
    expect((await ask(asset, { method: 'POST' })).status).toBe(405);
  });
});
