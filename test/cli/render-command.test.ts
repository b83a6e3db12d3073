import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

let service: ServiceProcess;
let folder: string;
let output: string;
beforeAll(async () => {
  service = await startService({});
});
afterAll(() => service.stop());
beforeEach(async () => {
  folder = (await useTemporaryFolder()).path;
  output = join(folder, 'output');
});

const serve = async (target: string): Promise<Buffer> =>
  Buffer.from(await (await fetch(service.origin + target)).arrayBuffer());

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
    const { status, stdout, stderr } = await runDarkroom(['render', target, output]);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout.toString()).toMatch(report);
    expect(readFileSync(output).equals(await serve(target))).toBe(true);
    expect(readdirSync(folder)).toEqual(['output']);
  });

  test('takes a whole URL, and gives standard output nothing but the bytes', async () => {
    const target = '/icons/1/ab12.png?size=16';
    const url = `https://cdn.example${target}`;
    const { status, stdout, stderr } = await runDarkroom(['render', url, '-']);
    expect(status).toBe(0);
    expect(stderr).toMatch(/^200, image\/png, 16 x \d+ px, /);
    expect(stdout.equals(await serve(target))).toBe(true);
  });

  test.each([
    [
      '/avatars/x/ab.webp?size=63',
      1,
      /^400 INVALID_FORM_BODY: The request is not valid\.\n {2}user_id: Expected .*\n {2}size: Expected .*\n$/,
    ],
    ['/avatars/1/nothing.webp', 1, /^404 UNKNOWN_MEDIA: There is no such media\.\n$/],
    [
      '/attachments/1/2/é.txt',
      64,
      /^"\/attachments\/1\/2\/é.txt" is not how a URL is sent\. Clients send \/attachments\/1\/2\/%C3%A9\.txt\n$/,
    ],
    ['/avatars/1/../2/ab12.webp', 64, / Clients send \/avatars\/2\/ab12\.webp\n$/],
    ['//', 64, /^"[^"]+" is [^\n]+\n$/],
    ['//a b/', 64, /^"[^"]+" is [^\n]+\n$/],
  ])('of %s shows why not, and leaves the file as it was', async (target, status, reason) => {
    writeFileSync(output, 'before');
    const result = await runDarkroom(['render', target, output]);
    expect([result.status, result.stdout.toString()]).toEqual([status, '']);
    const [, text] = /^darkroom: (.*)$/s.exec(result.stderr) ?? [];
    expect(text).toMatch(reason);
    expect([readFileSync(output, 'utf8'), readdirSync(folder)]).toEqual(['before', ['output']]);
  });

  test('shows what is behind a failing storage, and makes no file', async () => {
    const environment = {
      STORAGE: 's3',
      S3_BUCKET: 'originals',
      S3_ENDPOINT: 'http://127.0.0.1:1',
      AWS_ACCESS_KEY_ID: 'KEY',
      AWS_SECRET_ACCESS_KEY: 'HUSH',
    };
    const args = ['render', '/emojis/1.webp', output];
    const { status, stderr } = await runDarkroom(args, { environment });
    expect(status).toBe(1);
    expect(stderr).toMatch(/ECONNREFUSED/);
    expect(stderr).toMatch(/^darkroom: 502 ORIGIN_ERROR: The origin has failed\.$/m);
    expect(stderr).not.toContain('HUSH');
    expect(existsSync(output)).toBe(false);
  });
});
