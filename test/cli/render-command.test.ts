import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';

let service: ServiceProcess;
let folder: string;
beforeAll(async () => {
  service = await startService({});
});
afterAll(() => service.stop());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'darkroom-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('darkroom render', () => {
  test.each([
    ['/avatars/1/ab12.webp?size=80', /^200, image\/webp, 80 x 107 px, 2\.8 KiB \(\d+\) to /],
    ['/emojis/1473333333333333334.gif?size=64', /^200, image\/gif, 64 x \d+ px, \d+ frames, /],
    ['/avatars/3.png', /^200, image\/png, 256 x 256 px, /],
    ['/attachments/1/14/romeo.txt', /^200, text\/plain; charset=utf-8, 942 bytes \(942\) to /],
    [
      '/attachments/1475555555555555556/1476666666666666667/my%20photo%20%C3%A9.png?width=40&format=webp',
      /^200, image\/webp, 40 x \d+ px, /,
    ],
  ])('writes the bytes that the service sends: %s', async (target, report) => {
    const output = join(folder, 'output');
    const { status, stdout, stderr } = await runDarkroom(['render', target, output]);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout.toString()).toMatch(report);
    const answer = await fetch(service.origin + target);
    expect(readFileSync(output).equals(Buffer.from(await answer.arrayBuffer()))).toBe(true);
    expect(readdirSync(folder)).toEqual(['output']);
  });

  test('takes a whole URL, and gives standard output nothing but the bytes', async () => {
    const target = '/icons/1/ab12.png?size=16';
    const { status, stdout, stderr } = await runDarkroom([
      'render',
      `https://cdn.example${target}`,
      '-',
    ]);
    expect(status).toBe(0);
    expect(stderr).toMatch(/^200, image\/png, 16 x \d+ px, /);
    const answer = await fetch(service.origin + target);
    expect(stdout.equals(Buffer.from(await answer.arrayBuffer()))).toBe(true);
  });

  test('shows errors as the API does, and leaves the file as it was', async () => {
    const output = join(folder, 'output');
    writeFileSync(output, 'before');
    const { status, stdout, stderr } = await runDarkroom([
      'render',
      '/avatars/x/ab.webp?size=63',
      output,
    ]);
    expect([status, stdout.toString()]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^darkroom: 400 INVALID_FORM_BODY: The request is not valid\.\n {2}user_id: Expected .*\n {2}size: Expected .*\n$/,
    );
    expect(readFileSync(output, 'utf8')).toBe('before');
    expect(readdirSync(folder)).toEqual(['output']);

    const missing = await runDarkroom(['render', '/avatars/1/nothing.webp', join(folder, 'new')]);
    expect([missing.status, missing.stderr]).toEqual([
      1,
      'darkroom: 404 UNKNOWN_MEDIA: There is no such media.\n',
    ]);
    expect(existsSync(join(folder, 'new'))).toBe(false);
  });

  test.each([
    ['/attachments/1/2/é.txt', '/attachments/1/2/%C3%A9.txt'],
    ['/avatars/1/../2/ab12.webp', '/avatars/2/ab12.webp'],
  ])('renders nothing that clients would ask for otherwise: %s', async (target, sent) => {
    const { status, stderr } = await runDarkroom(['render', target, join(folder, 'new')]);
    expect([status, stderr]).toEqual([
      64,
      `darkroom: "${target}" is not how a URL is sent. Clients send ${sent}\n`,
    ]);
  });

  test.each(['//', '//a b/'])('renders nothing for %j, which is no URL', async (target) => {
    const { status, stderr } = await runDarkroom(['render', target, join(folder, 'new')]);
    expect(status).toBe(64);
    expect(stderr).toMatch(/^darkroom: "[^"]+" is [^\n]+\n$/);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('tells what is behind a failing storage', async () => {
    const environment = {
      STORAGE: 's3',
      S3_BUCKET: 'originals',
      S3_ENDPOINT: 'http://127.0.0.1:1',
      AWS_ACCESS_KEY_ID: 'KEY',
      AWS_SECRET_ACCESS_KEY: 'HUSH',
    };
    const output = join(folder, 'output');
    const { status, stderr } = await runDarkroom(['render', '/emojis/1.webp', output], {
      environment,
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/ECONNREFUSED/);
    expect(stderr).toMatch(/^darkroom: 502 ORIGIN_ERROR: The origin has failed\.$/m);
    expect(stderr).not.toContain('HUSH');
  });

  test('follows a link, and replaces what it leads to', async () => {
    writeFileSync(join(folder, 'real'), 'before');
    symlinkSync('real', join(folder, 'link'));
    const { status } = await runDarkroom(['render', '/avatars/0.png', join(folder, 'link')]);
    expect(status).toBe(0);
    expect(readFileSync(join(folder, 'real')).subarray(1, 4).toString()).toBe('PNG');
    expect(readdirSync(folder).sort()).toEqual(['link', 'real']);
  });

  test('makes what a link leads to, and gives up on links in a circle', async () => {
    mkdirSync(join(folder, 'there'));
    symlinkSync('there', join(folder, 'folder-link'));
    symlinkSync('../real', join(folder, 'there/second'));
    symlinkSync('folder-link/second', join(folder, 'first'));
    const { status } = await runDarkroom(['render', '/avatars/0.png', join(folder, 'first')]);
    expect(status).toBe(0);
    expect(readFileSync(join(folder, 'real')).subarray(1, 4).toString()).toBe('PNG');
    expect(readlinkSync(join(folder, 'first'))).toBe('folder-link/second');

    symlinkSync('circle', join(folder, 'circle'));
    const circle = await runDarkroom(['render', '/avatars/0.png', join(folder, 'circle')]);
    expect([circle.status, circle.stderr]).toEqual([
      1,
      `darkroom: ${join(folder, 'circle')} cannot be written: too many links\n`,
    ]);
    expect(readdirSync(folder).sort()).toEqual(['circle', 'first', 'folder-link', 'real', 'there']);
  });

  test.each([0o600, 0o664, 0o400])('leaves a file of mode %o its mode', async (mode) => {
    const output = join(folder, 'output');
    writeFileSync(output, 'before');
    chmodSync(output, mode);
    expect((await runDarkroom(['render', '/avatars/0.png', output])).status).toBe(0);
    expect(readFileSync(output).subarray(1, 4).toString()).toBe('PNG');
    expect(statSync(output).mode & 0o7777).toBe(mode);
  });

  test('writes a file whose name is as long as one can be', async () => {
    const name = 'x'.repeat(255);
    expect((await runDarkroom(['render', '/avatars/0.png', join(folder, name)])).status).toBe(0);
    expect(readdirSync(folder)).toEqual([name]);
  });

  test('writes to what is no file as it is, and to no folder', async () => {
    const { status } = await runDarkroom(['render', '/avatars/0.png', '/dev/null']);
    expect(status).toBe(0);
    const intoFolder = await runDarkroom(['render', '/avatars/0.png', folder]);
    expect([intoFolder.status, intoFolder.stderr]).toEqual([
      1,
      `darkroom: ${folder} is a folder\n`,
    ]);
    const nowhere = await runDarkroom(['render', '/avatars/0.png', join(folder, 'a/b.png')]);
    expect(nowhere.status).toBe(1);
    expect(nowhere.stderr).toMatch(/b\.png cannot be written: ENOENT/);
  });
});
