import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { LOCAL_CREDENTIALS, startLocalS3 } from '../support/s3/local-s3.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';
import { readSample, samples } from '../support/test-app.ts';

let folder: string;
let originals: string;
let environment: Record<string, string>;
beforeEach(async () => {
  folder = (await useTemporaryFolder()).path;
  originals = join(folder, 'originals');
  mkdirSync(originals);
  environment = { STORAGE_DIR: originals };
});

const file = (bytes: Uint8Array): string => {
  const path = join(folder, 'file');
  writeFileSync(path, bytes);
  return path;
};
const put = (key: string, path: string, stdin?: Uint8Array) =>
  runDarkroom(['put', key, path], { environment, ...(stdin && { stdin }) });

describe('darkroom put', () => {
  test('puts an image where it is served, and says what it has replaced', async () => {
    const first = await put('avatars/1/ab12', file(samples.jpeg));
    expect([first.status, first.stderr]).toEqual([0, '']);
    expect(first.stdout.toString()).toMatch(
      /^avatars\/1\/ab12: [\d.]+ KiB \(\d+\), served at \/avatars\/1\/ab12\.webp\n$/,
    );
    expect(readFileSync(join(originals, 'avatars/1/ab12')).equals(samples.jpeg)).toBe(true);
    const second = await put('avatars/1/ab12', file(samples.png));
    expect(second.stdout.toString()).toContain(
      'It has replaced another one; purge {"assets":["avatars/1/ab12"]}.\n',
    );
    expect(readFileSync(join(originals, 'avatars/1/ab12')).equals(samples.png)).toBe(true);
    expect(readdirSync(originals)).toEqual(['avatars']);
  });

  test('takes any attachment, an empty one too, and reads standard input', async () => {
    expect((await put('attachments/1/2/a b.svg', file(samples.svg))).status).toBe(0);
    expect((await put('attachments/1/2/empty', file(Buffer.alloc(0)))).status).toBe(0);
    const piped = await put('attachments/1/2/héllo.txt', '-', samples.text);
    expect(piped.stdout.toString()).toContain('served at /attachments/1/2/h%C3%A9llo.txt\n');
    expect((await put('emojis/7', '-', samples.animatedGif)).status).toBe(0);
    expect(readdirSync(join(originals, 'attachments/1/2')).sort()).toEqual([
      'a b.svg',
      'empty',
      'héllo.txt',
    ]);
    expect(readFileSync(join(originals, 'emojis/7')).equals(samples.animatedGif)).toBe(true);
  });

  test.each([
    ['avatars/1', /Keys are:\n {2}avatars\/\{user_id\}\/\{avatar_hash\}\n/],
    ['avatars/01/ab', /Keys are:/],
    ['../avatars/1/ab', /Keys are:/],
    ['avatars/1/ab12.webp', /What is served there has the key avatars\/1\/ab12\n$/],
    ['/avatars/1/a_ab12.gif', /What is served there has the key avatars\/1\/ab12\n$/],
    ['avatars/1/a_ab12', /What is served there has the key avatars\/1\/ab12\n$/],
    ['attachments/1/2/../x', /Keys are:/],
  ])('refuses the key %s', async (key, hint) => {
    const { status, stderr } = await put(key, file(samples.jpeg));
    expect([status, stderr.split('. ')[0]]).toEqual([
      64,
      `darkroom: "${key}" is the key of no original`,
    ]);
    expect(stderr).toMatch(hint);
    expect(readdirSync(originals)).toEqual([]);
  });

  test.each([
    ['text', samples.text, /415 UNSUPPORTED_MEDIA_TYPE: .* \(It is text\/plain; charset=utf-8\.\)/],
    ['a drawing', samples.svg, /415 .* \(It is image\/svg\+xml\.\)/],
    ['nothing', Buffer.alloc(0), /415 /],
    ['half a picture', readSample('icons/1/ab12').subarray(0, 3_000), /422 UNPROCESSABLE_MEDIA: /],
  ])('refuses %s as an avatar', async (_, bytes, reason) => {
    const { status, stderr } = await put('avatars/1/ab12', file(bytes));
    expect(status).toBe(1);
    expect(stderr).toMatch(/could never be served at \/avatars\/1\/ab12\.webp: /);
    expect(stderr).toMatch(reason);
    expect(readdirSync(originals)).toEqual([]);
  });

  test('refuses what is over the limits of this very service', async () => {
    environment = { ...environment, MAX_ORIGINAL_BYTES: '1000', MAX_INPUT_PIXELS: '100' };
    const large = await put('avatars/1/ab12', file(samples.jpeg));
    expect([large.status, large.stderr]).toEqual([
      1,
      `darkroom: ${join(folder, 'file')} could never be served at /avatars/1/ab12.webp: it is larger than 1000 bytes (MAX_ORIGINAL_BYTES)\n`,
    ]);
    environment = { ...environment, MAX_ORIGINAL_BYTES: '1000000' };
    const wide = await put('avatars/1/ab12', file(samples.jpeg));
    expect(wide.stderr).toMatch(/422 MEDIA_TOO_LARGE/);
    expect(readdirSync(originals)).toEqual([]);
  });

  test('puts nothing through a link, and replaces one that has the name', async () => {
    mkdirSync(join(folder, 'outside'));
    symlinkSync(join(folder, 'outside'), join(originals, 'attachments'));
    const { status, stderr } = await put('attachments/1/2/x', file(samples.text));
    expect(status).toBe(1);
    expect(stderr).toMatch(/attachments\/1\/2\/x cannot be written: .*is behind a link/);
    expect(readdirSync(join(folder, 'outside'))).toEqual([]);
    expect(readdirSync(originals)).toEqual(['attachments']);

    writeFileSync(join(folder, 'outside/kept'), 'kept');
    mkdirSync(join(originals, 'emojis'));
    symlinkSync(join(folder, 'outside/kept'), join(originals, 'emojis/1'));
    expect((await put('emojis/1', file(samples.png))).status).toBe(0);
    expect(readFileSync(join(folder, 'outside/kept'), 'utf8')).toBe('kept');
    expect(readFileSync(join(originals, 'emojis/1')).equals(samples.png)).toBe(true);
  });

  test.each([
    ['a folder', '< /', 'standard input is a folder'],
    ['closed', '<&-', 'standard input is closed, or /dev/null; name /dev/null itself for an empty'],
    ['nothing', '< /dev/null', 'standard input is closed, or /dev/null; name /dev/null itself'],
    ['not to be read', '0> /dev/full', 'standard input cannot be read: EBADF'],
  ])('replaces nothing where standard input is %s', async (_, redirection, reason) => {
    expect((await put('attachments/1/2/kept', file(samples.text))).status).toBe(0);
    for (const key of ['attachments/1/2/kept', 'avatars/1/ab12']) {
      const command = `${process.execPath} bin/darkroom.mjs put ${key} - ${redirection}`;
      const env = { ...process.env, ...environment };
      const { status, stderr } = spawnSync('sh', ['-c', command], { env, encoding: 'utf8' });
      expect([status, stderr]).toEqual([1, expect.stringContaining(reason)]);
      expect(stderr).toMatch(/^darkroom: [^\n]*\n$/);
    }
    expect(readFileSync(join(originals, 'attachments/1/2/kept')).equals(samples.text)).toBe(true);
    expect(readdirSync(originals)).toEqual(['attachments']);
    expect(readdirSync(join(originals, 'attachments/1/2'))).toEqual(['kept']);
  });

  test.each([
    ['nothing', /^darkroom: .*nothing cannot be read: ENOENT[^\n]*\n$/],
    ['/proc/self/mem', /^darkroom: \/proc\/self\/mem cannot be read: EIO[^\n]*\n$/],
    ['.', /^darkroom: [^\n]* is a folder\n$/],
  ])('says why %s cannot be read', async (name, reason) => {
    const { status, stderr } = await put('avatars/1/ab12', resolve(folder, name));
    expect([status, stderr]).toEqual([1, expect.stringMatching(reason)]);
  });

  test('puts into a bucket, and finds what is there already', async () => {
    const server = await startLocalS3({ allowMismatchedSignatures: true });
    onTestFinished(() => server.close());
    environment = {
      STORAGE: 's3',
      S3_BUCKET: 'originals',
      S3_ENDPOINT: server.endpoint,
      S3_PREFIX: 'media/',
      ...LOCAL_CREDENTIALS,
    };
    const first = await put('emojis/7', file(samples.png));
    expect([first.status, first.stderr]).toEqual([0, '']);
    expect(first.stdout.toString()).not.toContain('replaced');
    expect((await put('emojis/7', file(samples.webp))).stdout.toString()).toContain('replaced');
    const rendered = await runDarkroom(['render', '/emojis/7.webp?size=16', '-'], { environment });
    expect(rendered.stderr).toMatch(/^200, image\/webp, 16 x /);
    environment = { ...environment, S3_BUCKET: 'no-such-bucket' };
    const refused = await put('emojis/7', file(samples.png));
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^darkroom: the storage cannot be read; see darkroom check: .*NoSuchBucket/,
      ),
    ]);
  });
});
