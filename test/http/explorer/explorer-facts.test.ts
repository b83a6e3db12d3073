import { describe, expect, it } from 'vitest';
import type { Environment } from '../../../src/config/setting.ts';
import { enforced, SIGNING_KEY } from '../../support/signed-urls.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const EXTERNAL = { EXTERNAL_SIGNING_KEYS: SIGNING_KEY };
const SIGN = '/explorer/signed.json';

const NOTE = Buffer.from('no picture');

/** The service with two originals, which are in its storage and in its folder. */
async function start(settings: Environment = {}): Promise<TestApp> {
  const folder = await useTemporaryFolder();
  const app = await useTestApp({
    settings: { EXPLORER: 'on', STORAGE_DIR: folder.path, ...settings },
  });
  for (const [key, bytes] of [
    ['avatars/1/ab12', samples.jpeg],
    ['attachments/1/2/note.txt', NOTE],
  ] as const) {
    await folder.put(key, bytes);
    app.originals.put(key, bytes);
  }
  return app;
}

describe('what originals are', () => {
  it('has the facts of each path, in their order', async () => {
    const { get } = await start();
    const paths = [
      ...['/avatars/1/ab12.webp', '/avatars/3.png', '/attachments/1/2/note.txt'],
      ...['/avatars/1/absent.webp', '/avatars/x/y.webp', 'nothing', '/avatars/9.png'],
    ];
    const query = paths.map((path) => `path=${encodeURIComponent(path)}`).join('&');
    const { statusCode, headers, body } = await get(`/explorer/facts.json?${query}`);
    expect(statusCode).toBe(200);
    expect(headers['cross-origin-resource-policy']).toBe('same-origin');
    const [avatar, shipped, ...others] = JSON.parse(body).originals;
    expect(avatar).toMatchObject({ format: 'jpeg', frames: 1, isMoving: false });
    expect(avatar.sizeBytes).toBe(samples.jpeg.length);
    expect(shipped).toMatchObject({ format: 'png', widthPx: 256, heightPx: 256 });
    expect(others).toEqual([null, null, null, null, null]);
  });

  it('is read once for all who ask, and of fifty at most', async () => {
    const { get, originals } = await start();
    const url = `/explorer/facts.json?${'path=/avatars/1/ab12.webp&'.repeat(60)}`;
    const first = await get('/explorer/facts.json?path=/avatars/1/ab12.webp');
    expect(originals.reads.get('avatars/1/ab12')).toBe(1);
    const many = await get(url);
    expect(originals.reads.get('avatars/1/ab12')).toBe(1);
    expect(many.json().originals).toHaveLength(50);
    expect(many.json().originals[49]).toEqual(first.json().originals[0]);
  });
});

describe('the explorer as a signer', () => {
  it('is none where there is no key', async () => {
    const { get } = await start();
    expect((await get('/explorer/contract.json')).json().signs).toEqual([]);
    expect((await get(`${SIGN}?url=https://a.example/b.png`)).statusCode).toBe(404);
    const { shelves } = (await get('/explorer/originals.json')).json();
    expect(JSON.stringify(shelves)).not.toContain('signature');
  });

  it.each([EXTERNAL, enforced])('is none where it was not asked for: %j', async (settings) => {
    const { get } = await start({ EXPLORER: undefined, ...settings });
    for (const path of [SIGN, '/', '/explorer/originals.json']) {
      expect((await get(path)).statusCode, path).toBe(404);
    }
  });

  it('signs what another site has, as `darkroom sign` does', async () => {
    const { get } = await start(EXTERNAL);
    expect((await get('/explorer/contract.json')).json().signs).toEqual(['external media']);
    const url = 'https://media.example.org/a%20b/cat.png?w=1&h=2';
    const { statusCode, body } = await get(`${SIGN}?${new URLSearchParams({ url })}`);
    expect(statusCode).toBe(200);
    expect(JSON.parse(body).path).toBe(
      '/external/-tr41TTaeUQAml3n4juS1cw_XhDhYaBIPXQnzkoE8t8/v2/aHR0cHM6Ly9tZWRpYS5leGFtcGxlLm9yZy9hJTIwYi9jYXQucG5nP3c9MSZoPTI',
    );
    for (const query of ['url=nothing', 'url=', 'key=attachments/1/2/note.txt', '']) {
      const refused = await get(`${SIGN}?${query}`);
      expect([refused.statusCode, refused.json().code], query).toEqual([400, 'INVALID_FORM_BODY']);
    }
  });

  it('signs attachments, listed or not, so that they are served', async () => {
    const { get } = await start(enforced);
    const path = '/attachments/1/2/note.txt';
    expect((await get(path)).statusCode).toBe(404);
    const { shelves } = (await get('/explorer/originals.json')).json();
    const shelf = shelves.find(({ resource }: { resource: string }) => resource === 'attachment');
    const query = new URLSearchParams(shelf.originals[0].signature);
    const signed = await get(`${SIGN}?key=attachments/1/2/note.txt`);
    expect(signed.json().path).toBe(`${path}?${query}`);
    expect((await get(signed.json().path)).statusCode).toBe(200);
    for (const key of ['avatars/1/ab12', 'attachments/1', '']) {
      const { statusCode, headers } = await get(`${SIGN}?key=${key}`);
      expect(statusCode, key).toBe(400);
      expect(headers['cache-control'], key).toBe('no-store');
    }
  });
});
