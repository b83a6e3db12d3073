import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { openDirectoryStorage } from '../../support/directory-storage.ts';
import { openStream } from '../../support/open-stream.ts';
import { faultsOf } from '../../support/setting-faults.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { samples, type TestAppOptions } from '../../support/test-app.ts';
import { uploadTarget, useRelayApp } from '../../support/uploads/relay-app.ts';

// Contract §14: uploads to a storage that the platform reads, without a public route.

const bucket = 'uploads';
const body = { 'Content-Length': '5' };

async function useUploads({ settings = {}, ...parts }: TestAppOptions = {}) {
  const { path, list, put } = await useTemporaryDirectory();
  const relay = await useRelayApp({ ...parts, settings: { UPLOADS_DIR: path, ...settings } });
  const { origin } = await openDirectoryStorage(path);
  return {
    ...relay,
    uploads: { path, list, put },
    upload: async (key: string, terms = {}, headers = body, sent = 'hello') =>
      relay.app.send('PUT', uploadTarget(key, { bucket, ...terms }), headers, sent),
    readUpload: async (key: string) => text((await openStream(origin, key)).body),
  };
}

test('stores an upload under any key', async () => {
  const { upload, readUpload, list, uploads } = await useUploads();
  for (const key of [
    ...['0b8e1f52-6f0c-4d7e-9a54-2c1d3e4f5a6b', 'stream_previews/a~b.c-0123456789abcdef.jpg'],
    ...['b', '...', '.a/..b/c..', 'a b+c%20d?e=f&g#h;i:j@k,"<>|*', 'naïve/写真 🎉.jpg'],
    ...['avatars/1/ab12', 'k'.repeat(1_024), 'é'.repeat(512)],
    `${'🎉'.repeat(64)}${'.'.repeat(300)}/${'k'.repeat(255)}/${'.'.repeat(1)}a`,
    'a/'.repeat(511).padEnd(1_024, 'b'),
  ]) {
    const { status, headers, body } = await upload(key);
    expect([status, body.toString()], key).toEqual([200, '']);
    expect(headers.etag).toMatch(/^"[^"]+"$/);
    expect(await readUpload(key)).toBe('hello');
  }
  // The key is a path if file names allow it. The originals stay unchanged.
  expect(await uploads.list()).toContain('stream_previews/a~b.c-0123456789abcdef.jpg');
  expect(await list()).toEqual([]);
});

test('rejects invalid keys', async () => {
  const { upload, uploads } = await useUploads();
  for (const key of [
    ...['k'.repeat(1_025), `${'é'.repeat(512)}k`, 'a//b', 'a/', '/a', '.', '..', 'a/./b'],
    ...['a/../b', '../a', 'a\\b', 'a\nb', 'a\0b', 'a\u007fb', 'a\u0085b'],
  ]) {
    const { status, body } = await upload(key);
    const { code, errors } = JSON.parse(String(body));
    expect([status, code, errors.length], key).toEqual([400, 'INVALID_FORM_BODY', 1]);
  }
  expect(await uploads.list()).toEqual([]);
});

test('returns 403 for a path that differs from the key, and 400 for an undecodable one', async () => {
  const { app, uploads } = await useUploads();
  const [path = '', query = ''] = uploadTarget('a/b', { bucket }).split('?');
  for (const [wrong, status] of [
    [`${path}c`, 403],
    [path.replace('a/b', 'a%2fb'), 200],
    [path.replace('a/b', 'a/%zz'), 400],
    [path.replace('a/b', 'a/%ff'), 400],
  ] as const) {
    expect((await app.send('PUT', `${wrong}?${query}`, body, 'hello')).status).toBe(status);
  }
  expect(await uploads.list()).toEqual(['a/b']);
});

test('replaces existing objects, and does not check the bytes', async () => {
  const { upload, readUpload } = await useUploads();
  const type = { ...body, 'Content-Type': 'image/png' };
  for (const text of ['first', 'other']) {
    const { status } = await upload('a.png', { contentType: 'image/png' }, type, text);
    expect(status).toBe(200);
    expect(await readUpload('a.png')).toBe(text);
  }
});

test.each([
  ['a', 'a/b'],
  ['a', 'a/b/c'],
  ['a/b', 'a'],
])('with %s in the directory, rejects %s and stores nothing', async (existing, key) => {
  const { upload, uploads } = await useUploads();
  expect((await upload(existing)).status).toBe(200);
  const { status, body } = await upload(key);
  expect([status, JSON.parse(String(body)).code]).toEqual([409, 'MEDIA_EXISTS']);
  expect(await uploads.list()).toEqual([existing]);
});

test('no public route reads an upload', async () => {
  const { app, upload, uploads } = await useUploads();
  await uploads.put('avatars/1/ab12', samples.png);
  for (const key of ['attachments/1/2/a.txt', 'a']) expect((await upload(key)).status).toBe(200);
  const paths = [
    '/avatars/1/ab12.png',
    '/attachments/1/2/a.txt',
    '/a',
    '/uploads/a',
    '/v1/relay/a',
  ];
  for (const path of paths) {
    expect((await app.get(path)).statusCode, path).toBeGreaterThanOrEqual(404);
  }
});

test('applies the limits of all uploads', async () => {
  const { upload, uploads } = await useUploads({ settings: { RELAY_MAX_BYTES: '4' } });
  expect((await upload('a')).status).toBe(413);
  expect(await uploads.list()).toEqual([]);
});

test('an upload without a bucket, or to one other than the uploads bucket, becomes an original', async () => {
  const { app, list, uploads } = await useUploads({ settings: { UPLOADS_DIR_BUCKET: 'inbox' } });
  const put = async (key: string, bucket?: string) =>
    (await app.send('PUT', uploadTarget(key, { bucket }), body, 'hello')).status;
  expect(await put('attachments/1/2/a')).toBe(200);
  expect(await put('attachments/1/2/a')).toBe(409);
  expect(await put('attachments/1/2/b', 'uploads')).toBe(200);
  expect(await put('free', 'uploads')).toBe(400);
  expect(await put('free', 'inbox')).toBe(200);
  expect([...(await list())].sort()).toEqual(['attachments/1/2/a', 'attachments/1/2/b']);
  expect(await uploads.list()).toEqual(['free']);
});

test('accepts the example of the platform', async () => {
  const { app, uploads } = await useUploads({
    settings: {
      UPLOADS_DIR_BUCKET: 'fluxer-uploads',
      RELAY_SIGNING_KEYS: 'base64:O0Jjj3LjI5NdO+kLw7XCaNo6cQtpALQD72QHlCwiCHE=',
    },
    wallClock: () => 1_799_999_999_999,
  });
  const t =
    'eyJiIjoiZmx1eGVyLXVwbG9hZHMiLCJrIjoiMGI4ZTFmNTItNmYwYy00ZDdlLTlhNTQtMmMxZDNlNGY1YTZiIiwibSI6InB1dCIsIm1iIjoxMjM0NSwiZSI6MTgwMDAwMDAwMCwiY3QiOiJpbWFnZS9wbmcifQ.tryqF6TXIDTJiXM4rpU4Mxx97ePREPgq2Ahg7APfXac';
  const key = '0b8e1f52-6f0c-4d7e-9a54-2c1d3e4f5a6b';
  const target = `/v1/relay/${key}?t=${t}`;
  expect((await app.send('PUT', target, { 'Content-Length': '12346' })).status).toBe(413);
  expect((await app.send('PUT', target, body, 'hello')).status).toBe(200);
  expect(await uploads.list()).toEqual([key]);
});

test('rejects a directory that overlaps those of originals and renderings', async () => {
  const { path } = await useTemporaryDirectory();
  const at = (name: string): string => join(path, name);
  for (const directory of ['originals/in', 'results/results', 'uploads/in']) {
    await mkdir(at(directory), { recursive: true });
  }
  await symlink(at('originals'), at('link'));
  const results = { RESULT_STORE: 'filesystem', RESULT_STORE_DIR: at('results') };
  const faults = (UPLOADS_DIR: string) =>
    faultsOf({ STORAGE_DIR: at('originals'), ...results, UPLOADS_DIR });
  expect(faults(at('uploads'))).toEqual([]);
  const inside = ['originals/in', 'link/in', 'results/results'];
  for (const name of ['originals', 'originals/', '', 'link', 'results', ...inside, '../..']) {
    expect(faults(at(name))).toEqual([
      `UPLOADS_DIR: expected a directory separate from those of originals and renderings but received "${at(name)}"`,
    ]);
  }
  // Originals in a bucket do not occupy a directory.
  const inBucket = { STORAGE: 's3', S3_BUCKET: 'media', UPLOADS_DIR: at('originals') };
  expect(faultsOf({ ...inBucket, STORAGE_DIR: at('originals') })).toEqual([]);
  expect(faults(at('none'))).toEqual([
    `UPLOADS_DIR: expected an existing directory but received "${at('none')}"`,
  ]);
  expect(faultsOf({ ...inBucket, UPLOADS_S3_BUCKET: 'u' })).toEqual([
    `UPLOADS_DIR: expected nothing, since UPLOADS_S3_BUCKET is set but received "${at('originals')}"`,
  ]);
});

test.each([
  [{ UPLOADS_S3_BUCKET: 'media' }, 'UPLOADS_S3_BUCKET'],
  [
    { UPLOADS_S3_BUCKET: 'made', RESULT_STORE: 's3', RESULT_S3_BUCKET: 'made' },
    'UPLOADS_S3_BUCKET',
  ],
  [{ UPLOADS_DIR: 'test', UPLOADS_DIR_BUCKET: 'media' }, 'UPLOADS_DIR_BUCKET'],
  [{ UPLOADS_S3_BUCKET: 'uploads' }, undefined],
])('requires a bucket that differs from those that are read: %j', (extra, name) => {
  const faults = faultsOf({ STORAGE: 's3', S3_BUCKET: 'media', ...extra });
  expect(faults.map((fault) => fault.split(':')[0])).toEqual(name === undefined ? [] : [name]);
});
