import { hash } from 'node:crypto';
import { once } from 'node:events';
import { cp, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { useExternalApp } from '../../support/sites/external-app.ts';
import {
  metricsSettings,
  sendToAdmin,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import {
  createTestApp,
  samples,
  type TestApp,
  type TestAppOptions,
  useTestApp,
} from '../../support/test-app.ts';
import { uploadTarget, useRelayApp } from '../../support/uploads/relay-app.ts';

const sha256Of = (bytes: Uint8Array): string => hash('sha256', bytes);
const BLOCKED_BY = 'https://legal.example/';

let file: string;
let settings: Readonly<Record<string, string>>;
beforeEach(async () => {
  const { path } = await useTemporaryDirectory();
  file = join(path, 'blocks.jsonl');
  const list = { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: file, BLOCKLIST_POLL_SECONDS: '1' };
  settings = { ...metricsSettings, ...list, BLOCKED_BY };
});

type Admin = Pick<TestApp, 'requestAdmin'>;
const change = (app: Admin, payload: object, method?: 'DELETE') =>
  sendToAdmin(app, '/blocks', payload, method);
const list = async (app: Admin, query = '') =>
  (await app.requestAdmin(`/blocks${query}`, { headers: withToken })).json();
const block = async (app: Admin, payload: object) =>
  expect((await change(app, payload)).statusCode).toBe(200);

async function start(options: TestAppOptions = {}): Promise<TestApp> {
  const app = await useTestApp({ ...options, settings });
  app.originals.put('icons/1/ab12', samples.jpeg);
  app.originals.put('attachments/1/2/a.png', samples.png);
  app.originals.put('attachments/1/3/clip.mp4', samples.mp4);
  return app;
}

const targets = [
  '/icons/1/ab12.webp?size=16',
  '/icons/1/ab12.png',
  '/icons/1/a_ab12.gif',
  '/attachments/1/2/a.png',
  '/attachments/1/2/a.png?format=webp&width=8',
  '/attachments/1/3/clip.mp4',
];

describe('blocks', () => {
  test.each<[string, Readonly<Record<string, readonly string[]>>]>([
    ['keys', { keys: ['icons/1/a_ab12.png', 'attachments/1/2/a.png', 'attachments/1/3/clip.mp4'] }],
    ['prefixes', { prefixes: ['icons/1/', 'attachments/1/'] }],
    ['digests', { sha256: [samples.jpeg, samples.png, samples.mp4].map(sha256Of) }],
  ])('by %s return 451 for every request until unblocked', async (_, payload) => {
    const app = await start();
    const etags = await Promise.all(
      targets.map(async (url) => (await app.get(url)).headers.etag?.toString() ?? ''),
    );
    await block(app, payload);
    for (const [index, url] of targets.entries()) {
      const known = { 'if-none-match': etags[index] ?? '' };
      for (const requestHeaders of [{}, known, { range: 'bytes=0-3' }] as const) {
        const { statusCode, headers, json } = await app.get(url, requestHeaders);
        expect([url, statusCode, json().code]).toEqual([url, 451, 'UNAVAILABLE']);
        expect(headers).toMatchObject({
          'cache-control': 'no-store',
          link: `<${BLOCKED_BY}>; rel="blocked-by"`,
        });
      }
      expect((await app.send('HEAD', url)).status).toBe(451);
    }
    expect((await change(app, payload, 'DELETE')).json()).toEqual({ generation: 2 });
    for (const url of targets) expect((await app.get(url)).statusCode).toBe(200);
    for (const digest of payload.sha256 ?? []) {
      expect(JSON.stringify(app.log)).not.toContain(digest);
    }
  });

  test('cover missing originals below a prefix, but no others', async () => {
    const app = await start();
    await block(app, { prefixes: ['attachments/1/2/'] });
    expect((await app.get('/attachments/1/2/none.png')).statusCode).toBe(451);
    expect((await app.get('/attachments/1/20/none.png')).statusCode).toBe(404);
    expect((await app.get('/attachments/1/3/clip.mp4')).statusCode).toBe(200);
  });

  test('with hidden set return the 404 of a missing original', async () => {
    const app = await start();
    const shape = async (url: string) => {
      const { statusCode, headers, body } = await app.get(url);
      const { date, 'server-timing': timing, 'x-request-id': _, ...same } = headers;
      const stages = String(timing).replace(/dur=[\d.]+/g, 'dur');
      return { statusCode, body, stages, ...same };
    };
    await block(app, { keys: ['icons/1/ab12'], prefixes: ['attachments/1/'], hidden: true });
    for (const [hidden, missing] of [
      ['/icons/1/ab12.webp', '/icons/1/cd34.webp'],
      ['/attachments/1/2/a.png', '/attachments/2/2/a.png'],
      ['/attachments/1/2/a.png?width=8&format=png', '/attachments/2/2/a.png?width=8&format=png'],
    ] as const) {
      expect(await shape(hidden)).toEqual(await shape(missing));
      expect(await shape(hidden)).toEqual(await shape(missing));
    }
    // Regardless of other blocks of the original, before or after.
    await block(app, { keys: ['attachments/1/2/a.png'], prefixes: ['icons/1/'] });
    await block(app, { prefixes: ['attachments/1/2/'], hidden: true });
    for (const url of ['/icons/1/ab12.webp', '/attachments/1/2/a.png']) {
      expect((await app.get(url)).statusCode).toBe(404);
    }
    expect((await app.get('/icons/1/cd34.webp')).statusCode).toBe(451);
  });

  test('report every error of an invalid request, and apply none of its entries', async () => {
    const app = await start();
    const { statusCode, json } = await change(app, {
      keys: ['icons/1/ab12', '../x', 7],
      prefixes: ['attachments/1', 'nothing/'],
      sha256: ['ab'],
      external: ['ftp://a.example/'],
      hidden: 'yes',
      note: 1,
      key: [],
    });
    expect(statusCode).toBe(400);
    expect(json().errors.map((fault: { path: string }) => fault.path)).toEqual([
      ...['keys.1', 'keys.2', 'prefixes.0', 'prefixes.1', 'sha256.0', 'external.0'],
      ...['hidden', 'note', 'key'],
    ]);
    expect((await change(app, {})).statusCode).toBe(400);
    const keys = Array.from({ length: 1_001 }, (_each, index) => `emojis/${index + 1}`);
    expect((await change(app, { keys })).statusCode).toBe(400);
    expect(await list(app)).toEqual({ generation: 0, blocks: [] });
    expect((await app.get('/icons/1/ab12.webp')).statusCode).toBe(200);
  });

  test('are listed completely and looked up singly; a later block replaces note and hidden', async () => {
    const app = await start();
    const keys = Array.from({ length: 1_000 }, (_, index) => `emojis/${index + 1}`);
    await block(app, { keys, note: 'first' });
    await block(app, { keys: ['emojis/7'], note: 'second', hidden: true });
    await block(app, { external: ['HTTPS://Media.example.org/a#b'], keys: ['icons/1/a_ab.png'] });
    expect((await change(app, { keys: ['emojis/8'] }, 'DELETE')).json()).toEqual({ generation: 4 });
    const listed = await list(app);
    expect(Object.keys(listed)).toEqual(['generation', 'blocks']);
    expect([listed.generation, listed.blocks.length]).toEqual([4, 1_001]);
    const key = { kind: 'key', value: 'emojis/7', hidden: true, note: 'second' };
    const url = { kind: 'external', value: 'https://media.example.org/a', hidden: false, note: '' };
    const marked = { kind: 'key', value: 'icons/1/ab', hidden: false, note: '' };
    for (const row of [key, url, marked]) expect(listed.blocks).toContainEqual(row);
    for (const [query, blocks] of [
      ['kind=key&value=emojis/7', [key]],
      ['kind=key&value=emojis/7.webp', [key]],
      ['kind=key&value=emojis/8', []],
      ['kind=key&value=icons/1/a_ab', [marked]],
      ['kind=external&value=https://media.EXAMPLE.org/a', [url]],
      ['kind=prefix&value=emojis/', []],
    ] as const) {
      expect([query, await list(app, `?${query}`)]).toEqual([query, { generation: 4, blocks }]);
    }
    for (const [query, paths] of [
      ['kind=key', ['value']],
      ['value=emojis/7', ['kind']],
      ['kind=keys&value=emojis/7', ['kind']],
      ['kind=keys', ['kind', 'value']],
      ['kind=sha256&value=ab', ['value']],
      ['kind=key&value=emojis/7&value=emojis/8', ['value']],
    ] as const) {
      const { errors } = await list(app, `?${query}`);
      expect([query, errors?.map(({ path }: { path: string }) => path)]).toEqual([query, paths]);
    }
  });

  test('are limited to 100 000: a request for more gets a 400, and a longer list prevents the start', async () => {
    const objects = new MemoryObjects();
    const lines = (count: number): Buffer => {
      const blocks = Array.from({ length: count }, (_, index) => `emojis/${index + 1}`).map(
        (value) => JSON.stringify({ kind: 'key', value, hidden: false, note: '' }),
      );
      return Buffer.from(['{"generation":7}', ...blocks, ''].join('\n'));
    };
    await objects.write('', lines(99_999), 'absent');
    const app = await start({ objects });
    const { statusCode, json } = await change(app, { keys: ['icons/1/ab12', 'icons/1/cd34'] });
    expect([statusCode, json().errors]).toEqual([
      400,
      [{ path: '', message: expect.stringContaining('100000') }],
    ]);
    expect((await app.get('/icons/1/ab12.webp')).statusCode).toBe(200);
    expect((await change(app, { keys: ['emojis/7', 'icons/1/ab12'] })).statusCode).toBe(200);
    const { generation, blocks } = await list(app);
    expect([generation, blocks.length]).toEqual([8, 100_000]);
    expect((await app.get('/icons/1/ab12.webp')).statusCode).toBe(451);
    await objects.remove('');
    await objects.write('', lines(100_001), 'absent');
    await expect(createTestApp({ settings, objects })).rejects.toThrow('100001 blocks');
  });

  test('are limited to a list of 16 MiB', async () => {
    const app = await start({ objects: new MemoryObjects() });
    const note = '\u{1f469}'.repeat(500);
    let response = await change(app, { keys: ['icons/1/ab12'] });
    for (let call = 0; response.statusCode === 200; call += 1) {
      const keys = Array.from(
        { length: 1_000 },
        (_, index) => `emojis/${1_000 * call + index + 1}`,
      );
      response = await change(app, { keys, note });
    }
    expect([response.statusCode, response.json().errors[0].message]).toEqual([
      400,
      expect.stringContaining('16777216 bytes'),
    ]);
    const { generation, blocks } = await list(app);
    expect(blocks.length).toBe(1_000 * (generation - 1) + 1);
    expect(blocks.length).toBeGreaterThan(7_000);
  });

  test('by concurrent replicas apply in all replicas', async () => {
    const [first, second] = [await start(), await start()];
    expect((await second.get('/icons/1/ab12.webp')).statusCode).toBe(200);
    await block(first, { keys: ['icons/1/ab12'] });
    await expect
      .poll(async () => (await second.get('/icons/1/ab12.webp')).statusCode, { timeout: 6_000 })
      .toBe(451);
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        change(index % 2 === 0 ? first : second, { keys: [`emojis/${index + 1}`] }),
      ),
    );
    const generations = responses.map(({ json }) => json().generation).sort((a, b) => a - b);
    expect(generations).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect((await list(second)).blocks).toHaveLength(11);
  });

  const large = Buffer.alloc(40 * 1024 * 1024, 'x');
  test.each([
    ['another replica', { prefixes: ['attachments/1/'] }],
    ['the same replica', { sha256: [sha256Of(large)] }],
  ])('by %s cut off responses in progress: %j', async (_, payload) => {
    const app = await start();
    const other = 'prefixes' in payload ? await start() : app;
    // While digests are blocked, the service computes the digest of an original before it sends the original.
    if (other === app) await block(app, { sha256: [sha256Of(samples.text)] });
    app.originals.put('attachments/1/4/large.bin', large);
    const socket = await app.begin('/attachments/1/4/large.bin');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await once(socket, 'readable');
    const { generation } = (await change(other, payload)).json();
    await expect.poll(async () => (await list(app)).generation).toBe(generation);
    socket.resume();
    await closed;
    expect(socket.bytesRead).toBeLessThan(large.length);
  });

  test('written one after another all apply in a replica that starts later', async () => {
    const writing = await start();
    const keys = Array.from({ length: 12 }, (_, index) => `emojis/${index + 1}`);
    for (const key of keys) await block(writing, { keys: [key] });
    const reader = await start();
    for (const key of keys) expect((await reader.get(`/${key}.webp`)).statusCode, key).toBe(451);
    const blocks = keys.map((value) => ({ value }));
    expect(await list(reader)).toMatchObject({ generation: 12, blocks });
  });

  test('stay in effect while the list is unreadable, but cannot change', async () => {
    const app = await start();
    await block(app, { keys: ['icons/1/ab12'] });
    await rename(file, `${file}-away`);
    expect((await change(app, { keys: ['emojis/1'] })).statusCode).toBe(503);
    expect((await app.get('/icons/1/ab12.webp')).statusCode).toBe(451);
    const { reasons } = (await app.requestAdmin('/readyz')).json();
    expect(reasons).toContain(
      'the list of blocks cannot be read; the last version stays in effect',
    );
    await writeFile(file, 'no list\n');
    expect((await change(app, { keys: ['emojis/1'] })).statusCode).toBe(503);
    await rm(file);
    await rename(`${file}-away`, file);
    expect((await change(app, { keys: ['emojis/1'] })).json()).toEqual({ generation: 2 });
    const after = (await app.requestAdmin('/readyz')).json();
    expect(after.reasons).not.toContain(
      'the list of blocks cannot be read; the last version stays in effect',
    );
  });

  test('in an externally edited list apply to hits as well; a damaged list is an error', async () => {
    const write = (value: string) =>
      writeFile(file, `${JSON.stringify({ kind: 'key', value, hidden: false, note: '' })}\n`);
    await write('icons/1/ab12');
    const app = await start();
    expect((await app.get('/icons/1/ab12.webp')).statusCode).toBe(451);
    expect((await list(app)).blocks).toHaveLength(1);
    const statusOf = async (url: string) => (await app.get(url)).statusCode;
    const hit = '/attachments/1/2/a.png?format=webp&width=8';
    for (let time = 0; time < 2; time += 1) expect(await statusOf(hit)).toBe(200);
    await write('attachments/1/2/a.png');
    await expect.poll(() => statusOf(hit), { timeout: 6_000 }).toBe(451);
    expect(await statusOf('/icons/1/ab12.webp')).toBe(200);
    await writeFile(file, `{"kind": "key", "val`);
    await expect(createTestApp({ settings })).rejects.toThrow('BLOCKLIST: the list cannot be used');
  });

  test('by a digest from metadata apply to originals that are too large to be read first', async () => {
    const key = 'attachments/1/4/large.bin';
    const app = await useTestApp({ settings: { ...settings, MAX_ORIGINAL_BYTES: '100000' } });
    const bytes = Buffer.alloc(300_000, 'x');
    app.originals.put(key, bytes);
    const request = (query: string) =>
      app.requestAdmin(`/metadata/${key}${query}`, { headers: withToken });
    // A concurrent request without the digest neither prevents nor reverts the block.
    const [withDigest] = await Promise.all([
      request('?sha256=true'),
      request('?placeholder=false'),
    ]);
    expect(withDigest.json().sha256).toBe(sha256Of(bytes));
    await block(app, { sha256: [sha256Of(bytes)] });
    expect((await app.get(`/${key}`)).statusCode).toBe(451);
  });
});

describe('uploads', () => {
  test('with blocked bytes or to blocked keys are rejected, and store nothing', async () => {
    const resultStore = new MemoryResultStore();
    const { app, list: files } = await useRelayApp({ settings, resultStore });
    await block(app, { sha256: [sha256Of(samples.jpeg)], keys: ['icons/9/ab'], hidden: true });
    const put = async (key: string, bytes: Buffer) => {
      const length = { 'content-length': String(bytes.length) };
      return (await app.send('PUT', uploadTarget(key), length, bytes.toString('latin1'))).status;
    };
    expect(await put('icons/1/ab', samples.jpeg)).toBe(403);
    expect(await put('icons/9/ab', samples.png)).toBe(403);
    expect(await files()).toEqual([]);
    expect(await put('icons/2/ab', samples.png)).toBe(200);
    // The store keeps digests of accepted uploads for the next process.
    await expect.poll(() => resultStore.paths).toHaveLength(1);
  });
});

describe('external media', () => {
  test('are blocked by their URL, and by a URL that redirects to it', async () => {
    const app = await useExternalApp({ settings });
    app.site.serve('/a.png', samples.png);
    app.site.redirect('/moved', '/a.png');
    expect((await app.request('/moved', 'width=8')).status).toBe(200);
    await block(app, { external: [app.urlOf('/a.png')] });
    for (const path of ['/a.png', '/moved']) {
      for (const query of ['', 'width=8'])
        expect((await app.request(path, query)).status).toBe(451);
    }
  });

  test.each([
    ['a fragment', '/a.png#x'],
    ['a dot after the host', 'http://site.test.:PORT/a.png'],
    ['a dot after the host and a fragment', 'http://site.test.:PORT/a.png#x'],
    ['capitals in scheme and host', 'HTTP://Site.TEST:PORT/a.png'],
    ['a zero before the port', 'http://site.test:0PORT/a.png'],
    ['dot segments', '/b/.././a.png'],
    ['a backslash', '\\a.png'],
  ])('return 451 for a redirect to a blocked URL with %s', async (_, spelling) => {
    const app = await useExternalApp({ settings });
    const location = spelling.replace('PORT', String(app.site.port));
    app.site.serve('/a.png', samples.png);
    app.site.redirect('/moved', location);
    expect((await app.request('/moved')).status).toBe(200);
    await block(app, { external: [app.urlOf('/a.png')] });
    const before = app.site.requests.length;
    for (const query of ['', 'width=8'])
      expect((await app.request('/moved', query)).status).toBe(451);
    expect(app.site.requests.slice(before).map(({ url }) => url)).toEqual(['/moved', '/moved']);
  });

  test('return 451 for a rendering after a URL in its redirects was blocked', async () => {
    const app = await useExternalApp({ settings });
    app.site.serve('/a.png', samples.png);
    app.site.redirect('/between', '/a.png');
    app.site.redirect('/moved', '/between');
    expect((await app.request('/moved', 'width=8')).status).toBe(200);
    await block(app, { external: [app.urlOf('/between')] });
    expect((await app.request('/moved', 'width=8')).status).toBe(451);
    expect((await app.request('/a.png', 'width=8')).status).toBe(200);
  });
});

describe('a list written by an earlier release', () => {
  const earlier = join(import.meta.dirname, 'earlier');
  const live = [
    { kind: 'key', value: 'icons/1/ab12', hidden: true, note: 'again' },
    { kind: 'key', value: 'emojis/9', hidden: false, note: 'late' },
    { kind: 'key', value: 'avatars/1/ab12', hidden: false, note: 'late' },
    { kind: 'prefix', value: 'attachments/7/', hidden: false, note: 'folded, with ü' },
    {
      ...{ kind: 'sha256', hidden: true, note: '' },
      value: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    },
    {
      ...{ kind: 'external', hidden: false, note: 'folded, with ü' },
      value: 'https://media.example.org/cat.png',
    },
  ];

  test('is read with its later changes, and rewritten as one object', async () => {
    const { path, list: listFiles } = await useTemporaryDirectory();
    await cp(earlier, path, { recursive: true });
    settings = { ...settings, BLOCKLIST_FILE: join(path, 'blocks.jsonl') };
    const app = await start();
    expect(await list(app)).toEqual({ generation: 1_003, blocks: live });
    expect((await app.get('/icons/1/ab12.webp')).statusCode).toBe(404);
    expect((await app.get('/emojis/9.webp')).statusCode).toBe(451);
    const [head, ...lines] = (await readFile(join(path, 'blocks.jsonl'), 'utf8')).split('\n');
    expect([head, lines.at(-1)]).toEqual(['{"generation":1003}', '']);
    expect(lines.slice(0, -1).map((line) => JSON.parse(line))).toEqual(live);
    const kept = ['blocks.jsonl', 'blocks.jsonl.purges-bc3df17e99c4bc18', 'blocks.jsonl.tag-key'];
    expect(await listFiles()).toEqual(kept);
    expect((await change(app, { keys: ['emojis/10'] })).json()).toEqual({ generation: 1_004 });
    const again = await start();
    expect(await list(again)).toMatchObject({ generation: 1_004, blocks: { length: 7 } });
  });

  test('is rewritten by one of several starting processes, or by the next process', async () => {
    const objects = new MemoryObjects();
    for (const name of await readdir(earlier)) {
      const bytes = await readFile(join(earlier, name));
      await objects.write(name.replace(/^blocks\.jsonl\.?/, ''), bytes, 'absent');
    }
    // State after a process that had replaced the list was killed.
    const late = await objects.read('1002');
    const apps = await Promise.all([start({ objects }), start({ objects }), start({ objects })]);
    for (const app of apps) expect(await list(app)).toEqual({ generation: 1_003, blocks: live });
    await objects.write('1002', late?.bytes ?? Buffer.of(), 'absent');
    const next = await start({ objects });
    expect(await list(next)).toEqual({ generation: 1_003, blocks: live });
    expect(objects.names.filter((name) => /^\d+$/.test(name))).toEqual([]);
  });

  test('prevents the start if its main object is missing or a change is damaged', async () => {
    const objects = new MemoryObjects();
    await objects.write('1', Buffer.from('{"kind":"key","value":"emojis/9"}\n'), 'absent');
    await expect(createTestApp({ settings, objects })).rejects.toThrow('missing');
    await objects.write('', Buffer.from('{"generation":0,"list":"a"}\n'), 'absent');
    await objects.write('2', Buffer.from('{"kind":'), 'absent');
    await expect(createTestApp({ settings, objects })).rejects.toThrow('not a valid entry');
  });
});

test.each([
  ['If-None-Match', (condition: unknown) => condition === 'absent'],
  ['If-Match', (condition: unknown) => condition !== 'absent'],
])(
  'a server that ignores %s prevents the start, and the check leaves no object',
  async (name, isIgnored) => {
    const objects = new MemoryObjects();
    const write = objects.write.bind(objects);
    objects.write = async (key, bytes, condition) => {
      const tag = isIgnored(condition) ? await objects.findTag(key) : undefined;
      return write(key, bytes, tag === undefined ? condition : { tag });
    };
    await expect(createTestApp({ settings, objects })).rejects.toThrow(`ignores ${name}`);
    expect(objects.names).toEqual([]);
  },
);

test('a list replaced by an older one is unreadable until the next start', async () => {
  const app = await start();
  await block(app, { keys: ['icons/1/ab12'] });
  const older = await readFile(file);
  await block(app, { keys: ['emojis/9'] });
  await writeFile(file, older);
  expect((await change(app, { keys: ['emojis/1'] })).statusCode).toBe(503);
  expect((await app.get('/emojis/9.webp')).statusCode).toBe(451);
  expect(await list(await start())).toMatchObject({ generation: 1, blocks: { length: 1 } });
});

test('the next start removes files of killed processes next to the list', async () => {
  const { path, put, list: listFiles } = await useTemporaryDirectory();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const live = ['blocks.jsonl', '.incoming-fedcba9876543210fedcba9876543210'];
  const foreign = ['.incoming-notes', 'blocks.jsonl.old', 'other.jsonl.2.next-d'];
  const left = [
    'blocks.jsonl.incoming-0123456789abcdef0123456789abcdef',
    'blocks.jsonl.next-a-1-b',
    'blocks.jsonl.1.next-c',
    'blocks.jsonl.probe-0123456789abcdef.next-g',
    '.incoming-0123456789abcdef0123456789abcdef',
  ];
  const probe = 'blocks.jsonl.probe-0123456789abcdef';
  for (const name of [...live, ...foreign, ...left, probe]) {
    await put(name, name === 'blocks.jsonl' ? '{"generation":0}\n' : '');
  }
  const longAgo = new Date(Date.now() - 301_000);
  await utimes(join(path, left.at(-1) ?? ''), longAgo, longAgo);
  const place = { BLOCKLIST_FILE: join(path, 'blocks.jsonl'), BLOCKLIST_POLL_SECONDS: '60' };
  await useTestApp({ settings: { ...settings, ...place } });
  // A running process may have started to write them.
  const leftovers = [
    'blocks.jsonl.incoming-fedcba9876543210fedcba9876543210',
    'blocks.jsonl.probe-fedcba9876543210',
  ];
  for (const name of leftovers) await put(name, '');
  expect(await listFiles()).toEqual([...live, ...foreign, ...leftovers, probe].sort());
  vi.advanceTimersByTime(60_000);
  await expect.poll(listFiles).toEqual([...live, ...foreign, ...leftovers].sort());
});
