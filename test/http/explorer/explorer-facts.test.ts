import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parseTarget } from '../../../src/contract/media-request.ts';
import { sendRaw } from '../../support/http/raw-http.ts';
import { createTestApp, samples, type TestApp } from '../../support/test-app.ts';

const KEY = 'an-example-key-of-thirty-two-bytes-or-more';
const EXTERNAL = { EXTERNAL_SIGNING_KEYS: KEY };
const ATTACHMENTS = { ATTACHMENT_SIGNING: 'enforce', ATTACHMENT_SIGNING_KEYS: KEY };
const SIGN = '/explorer/signed.json';

let app: TestApp | undefined;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-facts-'));
  const files = {
    'avatars/1/ab12': samples.jpeg,
    'attachments/1/2/note.txt': Buffer.from('no picture'),
  };
  for (const [key, bytes] of Object.entries(files)) {
    await mkdir(dirname(join(folder, key)), { recursive: true });
    await writeFile(join(folder, key), bytes);
  }
});
afterAll(() => rm(folder, { recursive: true }));
afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function start(settings: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  app = await createTestApp({ settings: { EXPLORER: 'on', STORAGE_DIR: folder, ...settings } });
  return app;
}

describe('what originals are', () => {
  it('has the facts of each path, in their order', async () => {
    const { server, originals } = await start();
    originals.put('avatars/1/ab12', samples.jpeg);
    originals.put('attachments/1/2/note.txt', Buffer.from('no picture'));
    const paths = [
      ...['/avatars/1/ab12.webp', '/avatars/3.png', '/attachments/1/2/note.txt'],
      ...['/avatars/1/absent.webp', '/avatars/x/y.webp', 'nothing', '/avatars/9.png'],
    ];
    const query = paths.map((path) => `path=${encodeURIComponent(path)}`).join('&');
    const { statusCode, headers, body } = await server.inject(`/explorer/facts.json?${query}`);
    expect(statusCode).toBe(200);
    expect(headers['cross-origin-resource-policy']).toBe('same-origin');
    const [avatar, shipped, ...others] = JSON.parse(body).originals;
    expect(avatar).toMatchObject({ format: 'jpeg', frames: 1, isMoving: false });
    expect(avatar.sizeBytes).toBe(samples.jpeg.length);
    expect(shipped).toMatchObject({ format: 'png', widthPx: 256, heightPx: 256 });
    expect(others).toEqual([null, null, null, null, null]);
  });

  it('is read once for all who ask, and of fifty at most', async () => {
    const { server, originals } = await start();
    originals.put('avatars/1/ab12', samples.jpeg);
    const url = `/explorer/facts.json?${'path=/avatars/1/ab12.webp&'.repeat(60)}`;
    const first = await server.inject('/explorer/facts.json?path=/avatars/1/ab12.webp');
    expect(originals.reads.get('avatars/1/ab12')).toBe(1);
    const many = await server.inject(url);
    expect(originals.reads.get('avatars/1/ab12')).toBe(1);
    expect(many.json().originals).toHaveLength(50);
    expect(many.json().originals[49]).toEqual(first.json().originals[0]);
  });
});

describe('the explorer as a signer', () => {
  it('is none where there is no key', async () => {
    const { server } = await start();
    expect((await server.inject('/explorer/contract.json')).json().signs).toEqual([]);
    expect((await server.inject(`${SIGN}?url=https://a.example/b.png`)).statusCode).toBe(404);
    const { shelves } = (await server.inject('/explorer/originals.json')).json();
    expect(JSON.stringify(shelves)).not.toContain('signature');
  });

  it.each([EXTERNAL, ATTACHMENTS])('is none where it was not asked for: %j', async (settings) => {
    app = await createTestApp({
      settings: { EXPLORER: undefined, STORAGE_DIR: folder, ...settings },
    });
    for (const path of [SIGN, '/', '/explorer/originals.json']) {
      expect((await app.get(path)).statusCode, path).toBe(404);
    }
  });

  it('signs what another site has, as `darkroom sign` does', async () => {
    const { server } = await start(EXTERNAL);
    expect((await server.inject('/explorer/contract.json')).json().signs).toEqual([
      'external media',
    ]);
    const url = 'https://media.example.org/a%20b/cat.png?w=1&h=2';
    const { statusCode, body } = await server.inject(`${SIGN}?${new URLSearchParams({ url })}`);
    expect(statusCode).toBe(200);
    expect(JSON.parse(body).path).toBe(
      '/external/-tr41TTaeUQAml3n4juS1cw_XhDhYaBIPXQnzkoE8t8/v2/aHR0cHM6Ly9tZWRpYS5leGFtcGxlLm9yZy9hJTIwYi9jYXQucG5nP3c9MSZoPTI',
    );
    for (const query of ['url=nothing', 'url=', 'key=attachments/1/2/note.txt', '']) {
      const refused = await server.inject(`${SIGN}?${query}`);
      expect([refused.statusCode, refused.json().code], query).toEqual([400, 'INVALID_FORM_BODY']);
    }
  });

  it('signs attachments, listed or not, so that they are served', async () => {
    const { server, originals } = await start(ATTACHMENTS);
    originals.put('attachments/1/2/note.txt', Buffer.from('no picture'));
    const path = '/attachments/1/2/note.txt';
    expect((await server.inject(path)).statusCode).toBe(404);
    const { shelves } = (await server.inject('/explorer/originals.json')).json();
    const shelf = shelves.find(({ resource }: { resource: string }) => resource === 'attachment');
    const query = new URLSearchParams(shelf.originals[0].signature);
    const signed = await server.inject(`${SIGN}?key=attachments/1/2/note.txt`);
    expect(signed.json().path).toBe(`${path}?${query}`);
    expect((await server.inject(signed.json().path)).statusCode).toBe(200);
    for (const key of ['avatars/1/ab12', 'attachments/1', '']) {
      const { statusCode } = await server.inject(`${SIGN}?key=${key}`);
      expect(statusCode, key).toBe(400);
    }
  });

  it('is not there for a page whose name leads to this machine', async () => {
    const { listen } = await start({ ...EXTERNAL, ...ATTACHMENTS });
    const port = await listen();
    const path = `${SIGN}?url=https://a.example/b.png`;
    const foreign = await sendRaw(port, 'GET', path, { Host: `evil.example:${port}` });
    expect(foreign.status).toBe(404);
    const own = await sendRaw(port, 'GET', path, { Host: `localhost:${port}` });
    expect(own.status).toBe(200);
    expect(own.headers).not.toHaveProperty('access-control-allow-origin');
    expect(() => parseTarget(SIGN)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
    const post = await sendRaw(port, 'POST', path, { Host: `localhost:${port}` });
    expect(post.status).toBe(405);
  });
});
