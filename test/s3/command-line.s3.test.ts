import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';
import { makeTemporaryFolder, type TemporaryFolder } from '../support/temporary-folder.ts';

const { endpoint, secretAccessKey, credentials } = rgw;

const environment = {
  STORAGE: 's3',
  S3_BUCKET: 'commands',
  S3_ENDPOINT: endpoint,
  RESULT_STORE: 's3',
  RESULT_S3_BUCKET: 'commands-results',
  AWS_EC2_METADATA_DISABLED: 'true',
  ...credentials,
};

let folder: TemporaryFolder;
beforeAll(async () => {
  folder = await makeTemporaryFolder();
  for (const name of ['commands', 'commands-results']) await createRgwBucket(name);
});
afterAll(() => folder.remove());

const run = (...args: readonly string[]) => runDarkroom(args, { environment });

describe('the command line on Ceph RGW', () => {
  test('uploads an image and a large file, and renders from them', async () => {
    const image = await run('put', 'avatars/1/ab12', 'fixtures/originals/icons/1/ab12');
    expect([image.status, image.stderr]).toEqual([0, '']);
    const rendered = await run('render', '/avatars/1/ab12.webp?size=16', '-');
    expect(rendered.stderr).toMatch(/^200, image\/webp, 16 x /);

    const bytes = randomBytes(40 * 1024 * 1024);
    const file = join(folder.path, 'large.bin');
    writeFileSync(file, bytes);
    const large = await run('put', 'attachments/1/2/large.bin', file);
    expect([large.status, large.stderr]).toEqual([0, '']);
    const back = await run('render', '/attachments/1/2/large.bin', '-');
    expect(back.stdout.equals(bytes)).toBe(true);
  });

  test('check reports no fault of a sound configuration', async () => {
    const { status, stdout, stderr } = await run('check');
    expect([status, stderr]).toEqual([0, '']);
    const found = [...stdout.toString().matchAll(/^([\w ]+):/gm)].map(([, subject]) => subject);
    // Whether videos have posters depends on the machine.
    expect(found.filter((subject) => !subject?.endsWith(' posters'))).toEqual(
      'settings,storage,missing original,listing,reading,renderings,workers'
        .split(',')
        .map((subject) => `ok     ${subject}`),
    );
    expect(stdout.toString()).not.toContain(secretAccessKey);
  });

  test.each([
    [{ AWS_SECRET_ACCESS_KEY: 'wrong' }, 'SignatureDoesNotMatch', 'renderings'],
    [{ S3_BUCKET: 'no-such-bucket' }, 'NoSuchBucket', 'listing'],
  ])('check reports what is wrong with %j', async (wrong, cause, other) => {
    const { status, stdout } = await runDarkroom(['check'], {
      environment: { ...environment, ...wrong },
    });
    expect(status).toBe(1);
    for (const subject of ['missing original', other]) {
      expect(stdout.toString()).toMatch(new RegExp(`^FAULT {2}${subject}: .*${cause}`, 'm'));
    }
  });
});
