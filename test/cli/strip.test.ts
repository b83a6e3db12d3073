import { hash } from 'node:crypto';
import { chmod, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { stripOriginal } from '../../src/cli/strip/strip-original.ts';
import { MediaError } from '../../src/contract/errors.ts';
import { listenUntilEnd } from '../support/at-end.ts';
import { MemoryOrigin } from '../support/memory-origin.ts';
import { signal } from '../support/open-stream.ts';
import { runDarkroom, startDarkroom } from '../support/processes/command-line.ts';
import { type TemporaryDirectory, useTemporaryDirectory } from '../support/temporary-directory.ts';
import { samples } from '../support/test-app.ts';
import { OWNER, photo, plainPhoto, truncatedPhoto } from '../support/uploads/photos.ts';

let directory: TemporaryDirectory;
beforeEach(async () => {
  directory = await useTemporaryDirectory();
});

const strip = async (args: readonly string[], environment: Record<string, string> = {}) => {
  const options = { environment: { STORAGE_DIR: directory.path, ...environment } };
  const { status, stdout, stderr } = await runDarkroom(['strip', ...args], options);
  return { status, lines: stdout.toString().trimEnd().split('\n').sort(), stderr };
};

const read = (key: string) => readFile(join(directory.path, key));

/** Admin listener that records purges, and has one blocked digest. */
async function useAdmin(status = 200, blocked = '') {
  const purged: unknown[] = [];
  const server = createServer(async (request, response) => {
    const { method, url = '', headers } = request;
    expect(headers.authorization).toBe('Bearer a-token-of-the-tests');
    if (method === 'POST') purged.push(await json(request));
    const blocks = url === `/blocks?kind=sha256&value=${blocked}` ? [{}] : [];
    response.writeHead(status).end(JSON.stringify({ blocks }));
  });
  const ADMIN_PORT = String(await listenUntilEnd(server));
  return { purged, settings: { ADMIN_PORT, ADMIN_TOKEN: 'a-token-of-the-tests' } };
}

test('cleans the named originals, reports each, and purges changed ones', async () => {
  const { purged, settings } = await useAdmin();
  await directory.put('avatars/1/ab12', photo);
  await directory.put('emojis/1', plainPhoto);
  await directory.put('emojis/2', samples.text);
  await chmod(join(directory.path, 'avatars/1/ab12'), 0o640);
  const keys = ['avatars/1/a_ab12', 'emojis/1', 'emojis/2'];
  const { status, lines, stderr } = await strip(keys, settings);
  expect([status, stderr]).toEqual([0, '']);
  expect(lines).toEqual([
    '3 originals, 1 removed, 1 none, 1 not-supported',
    'avatars/1/ab12: removed',
    'emojis/1: none',
    'emojis/2: not-supported',
  ]);
  expect(purged).toEqual([{ assets: ['avatars/1/ab12'] }]);
  const cleaned = await read('avatars/1/ab12');
  expect([cleaned.length, cleaned.includes(OWNER)]).toEqual([photo.length, false]);
  expect((await stat(join(directory.path, 'avatars/1/ab12'))).mode & 0o777).toBe(0o640);
  expect(await directory.list()).toEqual(['avatars/1/ab12', 'emojis/1', 'emojis/2']);
});

test('cleans a directory; a dry run writes nothing, and a second run finds nothing to do', async () => {
  const { purged, settings } = await useAdmin();
  for (const key of ['attachments/1/2/a', 'attachments/1/3/b', 'attachments/12/4/c']) {
    await directory.put(key, photo);
  }
  await directory.put('attachments/1/no key', photo);
  const dry = await strip(['--dry-run', '--prefix', 'attachments/1'], settings);
  expect(dry.lines).toEqual([
    '2 originals, 2 would be removed (dry run: nothing was written)',
    'attachments/1/2/a: would be removed',
    'attachments/1/3/b: would be removed',
  ]);
  expect([dry.status, purged, (await read('attachments/1/2/a')).equals(photo)]).toEqual([
    0,
    [],
    true,
  ]);
  const first = await strip(['--prefix=attachments/1/'], settings);
  expect([first.status, first.lines[0]]).toEqual([0, '2 originals, 2 removed']);
  const second = await strip(['--prefix', 'attachments/1/'], settings);
  expect([second.status, second.lines[0]]).toEqual([0, '2 originals, 2 none']);
  expect(purged).toHaveLength(2);
  for (const key of ['attachments/12/4/c', 'attachments/1/no key']) {
    expect((await read(key)).equals(photo)).toBe(true);
  }
});

test('ends with status 1 after a missing or damaged original, and cleans the others', async () => {
  await directory.put('emojis/1', truncatedPhoto);
  await directory.put('emojis/3', photo);
  const { status, lines, stderr } = await strip(['emojis/1', 'emojis/2', 'emojis/3']);
  expect(status).toBe(1);
  expect(lines).toEqual([
    '3 originals, 1 cannot be cleaned, 1 missing, 1 removed',
    expect.stringMatching(/^emojis\/1: cannot be cleaned: The JPEG .*\.$/),
    'emojis/2: missing',
    'emojis/3: removed',
  ]);
  expect(stderr).toBe('darkroom: ADMIN_PORT is not set; purge the originals that changed\n');
  expect((await read('emojis/1')).equals(truncatedPhoto)).toBe(true);
});

test.each([
  [[], 'strip needs KEY or --prefix; see darkroom strip --help'],
  [['--dry-run'], 'strip needs KEY or --prefix; see darkroom strip --help'],
  [['--prefix'], '--prefix needs a value; see darkroom --help'],
  [['--prefix', '../..'], /is not a prefix of keys/],
  [['emojis/1', 'emojis'], /"emojis" is not the key of an original/],
])('ends with status 64 for the arguments %j, and changes nothing', async (args, message) => {
  await directory.put('emojis/1', photo);
  const { status, stderr } = await strip(args);
  expect(status).toBe(64);
  expect(stderr).toMatch(message);
  expect((await read('emojis/1')).equals(photo)).toBe(true);
});

test('stops after an original that cannot be purged, and names it', async () => {
  const { settings } = await useAdmin(503);
  await directory.put('emojis/1', photo);
  await directory.put('emojis/2', photo);
  const { status, stderr } = await strip(['emojis/1', 'emojis/2'], settings);
  expect(status).toBe(1);
  expect(stderr).toMatch(/^darkroom: emojis\/1 is stored without metadata, but not purged: .*503/);
  expect((await read('emojis/2')).equals(photo)).toBe(true);
});

test('does not clean an original whose digest is blocked, because the digest would change', async () => {
  const { purged, settings } = await useAdmin(200, hash('sha256', photo));
  const { path } = await useTemporaryDirectory();
  const blocklist = { BLOCKLIST: 'filesystem', BLOCKLIST_FILE: join(path, 'blocks.jsonl') };
  await directory.put('emojis/1', photo);
  const { status, lines } = await strip(['emojis/1'], { ...settings, ...blocklist });
  expect([status, lines, purged]).toEqual([0, ['1 original, 1 blocked', 'emojis/1: blocked'], []]);
  expect((await read('emojis/1')).equals(photo)).toBe(true);
  const blind = await strip(['emojis/1'], blocklist);
  expect([blind.status, blind.stderr]).toEqual([1, expect.stringMatching(/ADMIN_PORT is not set/)]);
});

test('can be stopped, and run again', async () => {
  const keys = Array.from({ length: 300 }, (_, index) => `emojis/${index}`);
  for (const key of keys) await directory.put(key, photo);
  const args = ['strip', '--prefix', 'emojis'];
  const { child, ended, stderr } = startDarkroom(args, { STORAGE_DIR: directory.path });
  onTestFinished(() => void child.kill('SIGKILL'));
  let shown = '';
  child.stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString();
  });
  await expect.poll(() => shown.split('\n').length, { interval: 5 }).toBeGreaterThan(3);
  child.kill('SIGINT');
  expect(await ended).toBe('SIGINT');
  expect(stderr()).toMatch(/^darkroom: stopped; .*run it again/);
  expect([...(await directory.list())].sort()).toEqual([...keys].sort());
  const { status, lines } = await strip(['--prefix', 'emojis/']);
  expect(status).toBe(0);
  const [, removed = '0', none = '0'] =
    /^300 originals(?:, (\d+) removed)?(?:, (\d+) none)?/.exec(
      (lines[0] ?? '').replace(/(, \d+ none)(, \d+ removed)/, '$2$1'),
    ) ?? [];
  expect(Number(removed) + Number(none)).toBe(300);
  expect(Number(none)).toBeGreaterThan(0);
  for (const key of keys) expect((await read(key)).includes(OWNER)).toBe(false);
});

describe('an original that others replace at the same time', () => {
  /** The first `failures` writes find a changed original. */
  function prepare(failures: number) {
    const origin = new MemoryOrigin();
    origin.put('emojis/1', photo);
    const tags: unknown[] = [];
    let purges = 0;
    const parts = {
      origin,
      purge: async () => {
        purges += 1;
      },
      firstByteTimeoutMs: 1_000,
      isDryRun: false,
      writer: {
        write: async (
          _key: string,
          chunks: AsyncIterable<Uint8Array>,
          options: { readonly ifMatch?: string | undefined },
        ) => {
          for await (const _ of chunks);
          tags.push(options.ifMatch);
          if (tags.length > failures) return 'tag';
          origin.put('emojis/1', Buffer.concat([photo]), new Date(tags.length));
          throw new MediaError('PRECONDITION_FAILED');
        },
        writePart: undefined,
        has: async () => true,
        memoryBytesOf: () => 0,
      },
    };
    return { origin, parts, tags, countPurges: () => purges };
  }

  test('is cleaned in its new version', async () => {
    const { origin, parts, tags, countPurges } = prepare(2);
    expect(await stripOriginal('emojis/1', parts, signal)).toBe('removed');
    expect([tags.length, origin.openBodies, countPurges()]).toEqual([3, 0, 3]);
  });

  test('fails after three attempts', async () => {
    const { parts, tags } = prepare(3);
    const stripped = stripOriginal('emojis/1', parts, signal);
    await expect(stripped).rejects.toMatchObject({ code: 'PRECONDITION_FAILED' });
    expect(tags).toHaveLength(3);
  });

  test('is closed if the writer rejects it unread, or its version changes', async () => {
    const { origin, parts } = prepare(0);
    const refuse = async () => {
      throw new MediaError('PRECONDITION_FAILED');
    };
    const writer = { ...parts.writer, write: refuse };
    const refused = stripOriginal('emojis/1', { ...parts, writer }, signal);
    await expect(refused).rejects.toMatchObject({ code: 'PRECONDITION_FAILED' });
    await expect.poll(() => origin.openBodies).toBe(0);
    let reads = 0;
    origin.alter = (opened) => ({ ...opened, etag: `tag ${reads++}` });
    await expect(stripOriginal('emojis/1', parts, signal)).rejects.toThrow();
    await expect.poll(() => origin.openBodies).toBe(0);
  });

  test('is read again if its version changes between the two reads', async () => {
    const { origin, parts, tags } = prepare(0);
    let reads = 0;
    origin.alter = (opened) => {
      reads += 1;
      return reads === 1 ? { ...opened, etag: 'another' } : opened;
    };
    expect(await stripOriginal('emojis/1', parts, signal)).toBe('removed');
    expect([reads, tags.length]).toEqual([4, 1]);
  });
});
