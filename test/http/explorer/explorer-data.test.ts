import { readFileSync } from 'node:fs';
import { rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { resourceNames } from '../../../src/contract/resources.ts';
import {
  type TemporaryDirectory,
  useTemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

const FACTS = '/explorer/facts.json';
const LIST = '/explorer/originals.json';
const FILES = ['page.css', 'icon.svg', 'contract.json'].map((name) => `/explorer/${name}`);
const PATHS = ['/', ...FILES, LIST, FACTS];

let directory: TemporaryDirectory;
beforeEach(async () => {
  directory = await useTemporaryDirectory();
  await directory.put('originals/avatars/1/ab12', samples.jpeg);
});

const start = (EXPLORER: string, settings = {}) =>
  useTestApp({
    settings: { EXPLORER, STORAGE_DIR: join(directory.path, 'originals'), ...settings },
  });

test('the page and its data are not cached, framed or readable by other sites, and have no other files', async () => {
  const { server, get } = await start('on');
  const types: unknown[] = [];
  for (const url of PATHS) {
    const { statusCode, headers, rawPayload } = await get(url);
    expect([statusCode, headers['content-length']]).toEqual([200, String(rawPayload.length)]);
    expect(headers, url).toMatchObject({
      ...{ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
      ...{ 'cross-origin-resource-policy': 'same-origin', 'referrer-policy': 'no-referrer' },
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    });
    types.push(headers['content-type']);
    const head = await server.inject({ method: 'HEAD', url });
    const comparable = ({ date: _, 'x-request-id': __, ...others }: typeof headers) => others;
    expect([comparable(head.headers), head.body]).toEqual([comparable(headers), '']);
    for (const [method, status] of [
      ['OPTIONS', 204],
      ['POST', 405],
      ['DELETE', 405],
    ] as const) {
      const other = await server.inject({ method, url });
      expect([other.statusCode, other.headers.allow]).toEqual([status, 'GET, HEAD, OPTIONS']);
      expect(Object.keys({ ...headers, ...other.headers }).join()).not.toContain('access-control');
    }
  }
  expect(types.slice(0, 4)).toEqual([
    ...['text/html', 'text/css'].map((type) => `${type}; charset=utf-8`),
    ...['image/svg+xml', 'application/json; charset=utf-8'],
  ]);
  const { body } = await get('/?anything');
  expect(body).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/);
  const links = [...body.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, link = '']) => link);
  expect(links.length).toBeGreaterThan(5);
  for (const link of links) expect(link).toMatch(/^\/(?:explorer\/[\w-]+\.\w+|avatars\/0\.png)$/);
  expect(body).toMatch(/<noscript>.*needs JavaScript/s);
  const names = ['explorer.ts', 'tsconfig.json', 'nothing.js', '../explorer-files.ts', ''];
  const others = ['//', '/%65xplorer/page.css', '/explorer/page.css/', '/index.html'];
  for (const path of [...names.map((name) => `/explorer/${name}`), ...others]) {
    const { statusCode, headers } = await get(path);
    expect([statusCode, headers['cache-control']], path).toEqual([404, 'public, max-age=30']);
  }
});

test('the paths of a disabled explorer return a 404 like any other', async () => {
  const { server } = await start('off');
  for (const url of PATHS) {
    for (const method of ['GET', 'OPTIONS', 'POST'] as const) {
      const { statusCode, headers, body } = await server.inject({ method, url });
      const seen = [statusCode, headers['cache-control'], JSON.parse(body).code];
      expect(seen).toEqual([404, 'public, max-age=30', 'NOT_FOUND']);
    }
  }
});

test('contract.json describes the tables of the contract', async () => {
  const { get } = await start('on');
  const { resources, external } = (await get('/explorer/contract.json')).json();
  const all = [...resources, ...external].map(({ name }) => name);
  expect(all.sort()).toEqual([...resourceNames].sort());
  expect(external).toMatchObject([{ template: '/external/{signature}/{target}' }]);
  const extensions = ['png', 'jpg', 'jpeg', 'webp', 'gif'];
  const template = '/avatars/{user_id}/{avatar_hash}.{ext}';
  expect(resources[0]).toMatchObject({ template, extensions });
});

test('originals.json lists originals in the storage again after two seconds, and does not cache failures', async () => {
  await directory.put('secret', 'secret');
  await symlink(join(directory.path, 'secret'), join(directory.path, 'originals/avatars/1/link'));
  const { clock, get, log } = await start('on');
  const first = await get(LIST);
  const { shelves } = first.json();
  const found = shelves.filter(({ originals }: { originals: unknown[] }) => originals.length > 0);
  const values = { user_id: '1', avatar_hash: 'ab12' };
  const avatar = { values, sizeBytes: samples.jpeg.length };
  const shipped = Array(6).fill(expect.anything());
  expect(found).toEqual([
    { resource: 'user avatar', isComplete: true, originals: [avatar] },
    { resource: 'default avatar', isComplete: true, originals: shipped },
  ]);
  await directory.put('originals/avatars/1/cd34', samples.png);
  clock.advance(1_999);
  expect((await get(`${LIST}?again`)).body).toBe(first.body);
  clock.advance(2);
  expect((await get(LIST)).body).toContain('cd34');

  clock.advance(2_001);
  await rename(join(directory.path, 'originals'), join(directory.path, 'gone'));
  const { statusCode, headers, body } = await get(LIST);
  expect([statusCode, headers['cache-control']]).toEqual([502, 'no-store']);
  expect(JSON.parse(body).code).toBe('ORIGIN_ERROR');
  expect(body).not.toContain(directory.path);
  expect(log.errors).toHaveLength(1);
  await rename(join(directory.path, 'gone'), join(directory.path, 'originals'));
  expect((await get(LIST)).statusCode).toBe(200);
});

test('facts.json returns the properties of each path, in order, up to fifty, and frees all slots', async () => {
  const { get, originals } = await start('on');
  originals.put('avatars/1/ab12', samples.jpeg);
  originals.put('attachments/1/2/note.txt', samples.text);
  const request = async (paths: readonly string[]) => {
    const query = paths.map((path) => `path=${encodeURIComponent(path)}`).join('&');
    return (await get(`${FACTS}?${query}`)).json().originals;
  };
  const described = await request([
    ...['/avatars/1/ab12.webp', '/avatars/3.png', '/attachments/1/2/note.txt'],
    ...['/avatars/x/y.webp', 'nothing', '/avatars/9.png'],
    ...Array(3).fill('/avatars/1/absent.webp'), // more than are described concurrently
  ]);
  expect(described).toMatchObject([
    { format: 'jpeg', frames: 1, isMoving: false, sizeBytes: samples.jpeg.length },
    { format: 'png', widthPx: 256, heightPx: 256 },
    ...Array(7).fill(null),
  ]);
  const many = await request(Array(60).fill('/avatars/1/ab12.webp'));
  expect(many).toEqual(Array(50).fill(described[0]));
  expect(originals.openBodies).toBe(0);
});

test('facts.json returns codec and duration of a video without decoding a frame', async () => {
  const { get, originals, renderer } = await start('on');
  originals.put('attachments/1/2/clip.mp4', readFileSync('fixtures/video/clip-h264.mp4'));
  const size = { widthPx: 240, heightPx: 160, sizeBytes: 2464 };
  const video = { format: 'mp4', ...size, frames: 1, isMoving: false };
  const { body } = await get(`${FACTS}?path=/attachments/1/2/clip.mp4`);
  expect(JSON.parse(body).originals).toEqual([{ ...video, durationS: 2, codec: 'avc1.64000b' }]);
  expect(renderer.renders).toBe(0);
});
