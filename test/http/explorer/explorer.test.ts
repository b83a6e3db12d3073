import { rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { parsePath } from '../../../src/contract/media-path.ts';
import { resourceRows } from '../../../src/contract/resources.ts';
import { connectSecurely } from '../../support/http/raw-http.ts';
import { tlsSettings } from '../../support/http/tls-files.ts';
import { SIGNING_KEY } from '../../support/signed-urls.ts';
import { type TemporaryFolder, useTemporaryFolder } from '../../support/temporary-folder.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const PATHS = [
  '/',
  '/explorer/page.css',
  '/explorer/icon.svg',
  '/explorer/contract.json',
  '/explorer/originals.json',
  '/explorer/facts.json',
];

let folder: TemporaryFolder;

beforeEach(async () => {
  folder = await useTemporaryFolder();
  await folder.put('originals/avatars/1/ab12', samples.jpeg);
});

const start = (EXPLORER: 'on' | 'off', settings = {}): Promise<TestApp> =>
  useTestApp({ settings: { EXPLORER, STORAGE_DIR: join(folder.path, 'originals'), ...settings } });

describe('the explorer', () => {
  it('is a page with files of its own, that is not kept, framed or read from elsewhere', async () => {
    const { get } = await start('on');
    for (const path of PATHS) {
      const { statusCode, headers } = await get(path);
      expect(statusCode, path).toBe(200);
      expect(headers, path).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      });
      expect(headers, path).not.toHaveProperty('access-control-allow-origin');
    }
    const typeOf = async (path: string) => (await get(path)).headers['content-type'];
    expect(await typeOf('/')).toBe('text/html; charset=utf-8');
    expect(await typeOf('/?anything')).toBe('text/html; charset=utf-8');
    expect(await typeOf('/explorer/page.css')).toBe('text/css; charset=utf-8');
    expect(await typeOf('/explorer/icon.svg')).toBe('image/svg+xml');
  });

  it('has a page that runs nothing but its own files, and says what it is without them', async () => {
    const { get } = await start('on');
    const { body } = await get('/');
    expect(body).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/);
    const links = [...body.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, link = '']) => link);
    expect(links.length).toBeGreaterThan(5);
    for (const link of links) expect(link).toMatch(/^\/(?:explorer\/[\w-]+\.\w+|avatars\/0\.png)$/);
    expect(body).toMatch(/<noscript>.*needs JavaScript/s);
  });

  it('has exactly these paths, and none of the contract', async () => {
    const { get } = await start('on');
    const names = ['explorer.ts', 'tsconfig.json', 'nothing.js', '../explorer-files.ts', ''];
    const others = ['//', '/%65xplorer/page.css', '/explorer/page.css/', '/index.html'];
    for (const path of [...names.map((name) => `/explorer/${name}`), ...others]) {
      const { statusCode, body } = await get(path);
      expect([statusCode, JSON.parse(body).code], path).toEqual([404, 'NOT_FOUND']);
    }
    for (const path of PATHS) expect(parsePath(path).kind).toBe('no template');
  });

  it('responds to HEAD as to GET, and to OPTIONS with what it takes; refuses the rest', async () => {
    const { server } = await start('on');
    for (const url of PATHS) {
      const get = await server.inject(url);
      const head = await server.inject({ method: 'HEAD', url });
      const lasting = ({ date: _, 'x-request-id': __, ...headers }: typeof get.headers) => headers;
      expect(lasting(head.headers)).toEqual(lasting(get.headers));
      expect(get.headers['content-length']).toBe(String(get.rawPayload.length));
      expect(head.body).toBe('');
      const options = await server.inject({ method: 'OPTIONS', url });
      expect(options.statusCode).toBe(204);
      expect(options.headers.allow).toBe('GET, HEAD, OPTIONS');
      expect(Object.keys(options.headers).join()).not.toContain('access-control');
      for (const method of ['POST', 'PUT', 'DELETE'] as const) {
        const refused = await server.inject({ method, url });
        expect([refused.statusCode, refused.json().code]).toEqual([405, 'METHOD_NOT_ALLOWED']);
        expect(refused.headers).toMatchObject({
          allow: 'GET, HEAD, OPTIONS',
          'cache-control': 'no-store',
        });
      }
    }
  });

  it('is not there where it is off: its paths are 404 like any other', async () => {
    const { server } = await start('off');
    for (const url of PATHS) {
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST'] as const) {
        const { statusCode, headers, body } = await server.inject({ method, url });
        expect(statusCode, `${method} ${url}`).toBe(404);
        expect(headers['cache-control']).toBe('public, max-age=30');
        if (method !== 'HEAD') expect(JSON.parse(body).code).toBe('NOT_FOUND');
      }
    }
  });

  it('changes nothing of the media beside it', async () => {
    const { get, originals } = await start('on');
    originals.put('avatars/1/ab12', samples.jpeg);
    const media = await get('/avatars/1/ab12.webp?size=16');
    expect(media.statusCode).toBe(200);
    expect(media.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'content-security-policy': "default-src 'none'; sandbox",
    });
    expect((await get('/nothing')).headers['cache-control']).toBe('public, max-age=30');
  });

  it('offers what the contract has, from its tables', async () => {
    const { get } = await start('on');
    const { resources, external } = (await get('/explorer/contract.json')).json();
    expect(resources.map(({ name }: { name: string }) => name)).toEqual(
      Object.keys(resourceRows).filter((name) => name !== 'external media'),
    );
    expect(external).toMatchObject([{ template: '/external/{signature}/{target}' }]);
    expect(resources[0]).toMatchObject({
      template: '/avatars/{user_id}/{avatar_hash}.{ext}',
      extensions: ['png', 'jpg', 'jpeg', 'webp', 'gif'],
    });
  });

  it('lists the originals of the storage and the default avatars, and nothing behind a link', async () => {
    await folder.put('secret', 'secret');
    await symlink(join(folder.path, 'secret'), join(folder.path, 'originals/avatars/1/link'));
    const { get } = await start('on');
    const { shelves } = (await get('/explorer/originals.json')).json();
    const found = shelves.filter(({ originals }: { originals: unknown[] }) => originals.length > 0);
    expect(found).toMatchObject([
      {
        resource: 'user avatar',
        isComplete: true,
        originals: [
          { values: { user_id: '1', avatar_hash: 'ab12' }, sizeBytes: samples.jpeg.length },
        ],
      },
      { resource: 'default avatar', isComplete: true },
    ]);
    expect(found[0].originals).toHaveLength(1);
    expect(found[1].originals).toHaveLength(6);
  });

  it('lists them anew after two seconds, and not sooner', async () => {
    const { clock, get } = await start('on');
    const list = async (query = '') => (await get(`/explorer/originals.json${query}`)).body;
    const first = await list();
    await folder.put('originals/avatars/1/cd34', samples.png);
    clock.advance(1_999);
    expect(await list('?anew')).toBe(first);
    clock.advance(2);
    expect(await list()).toContain('cd34');
  });

  it('is not there for a page whose name leads to this machine: as if it were off', async () => {
    const { get, listen, send } = await start('on', { EXTERNAL_SIGNING_KEYS: SIGNING_KEY });
    const port = await listen();
    const off = await get('/nothing');
    for (const path of [...PATHS, '/explorer/signed.json?url=https://a.example/b.png']) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const { status, headers, body } = await send(method, path, {
          Host: `evil.example:${port}`,
        });
        expect(status, `${method} ${path}`).toBe(404);
        expect(headers['cache-control']).toBe(off.headers['cache-control']);
        expect(body.toString()).toBe(off.body);
      }
      for (const name of ['localhost', '127.0.0.1', '[::1]', 'darkroom.localhost']) {
        const { status, headers } = await send('GET', path, { Host: `${name}:${port}` });
        expect(status, `${name} ${path}`).toBe(200);
        expect(headers).not.toHaveProperty('access-control-allow-origin');
      }
    }
    // The media are anybody's.
    const media = await send('GET', '/avatars/0.png', { Host: 'evil.example' });
    expect(media.status).toBe(200);
  });

  it('is not there for such a page with TLS either', async () => {
    const { listen, send } = await start('on', tlsSettings);
    const port = await listen();
    const askSecurely = async (Host: string, path: string): Promise<number> =>
      (await send('GET', path, { Host }, '', connectSecurely)).status;
    const path = '/explorer/originals.json';
    expect(await askSecurely(`evil.example:${port}`, path)).toBe(404);
    expect(await askSecurely(`localhost:${port}`, path)).toBe(200);
    expect(await askSecurely('evil.example', '/avatars/0.png')).toBe(200);
  });

  it('says so where the storage fails, the way the API does, and in the log', async () => {
    const { get, log } = await start('on');
    await rename(join(folder.path, 'originals'), join(folder.path, 'gone'));
    const { statusCode, headers, body } = await get('/explorer/originals.json');
    expect([statusCode, JSON.parse(body).code]).toEqual([502, 'ORIGIN_ERROR']);
    expect(headers['cache-control']).toBe('no-store');
    expect(headers).not.toHaveProperty('access-control-allow-origin');
    expect(body).not.toContain(folder.path);
    expect(log.errors).toHaveLength(1);
    expect((await get('/')).statusCode).toBe(200);
    // No failure is remembered.
    await rename(join(folder.path, 'gone'), join(folder.path, 'originals'));
    expect((await get('/explorer/originals.json')).statusCode).toBe(200);
  });
});
