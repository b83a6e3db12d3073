import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ListMultipartUploadsCommand, ListPartsCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { runDarkroom, startDarkroom } from '../support/processes/command-line.ts';
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
  test('puts an image and a large file, and renders them', async () => {
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

  test('leaves no part of an upload behind that ^C has stopped, nor another original', async () => {
    const key = 'attachments/1/3/large.bin';
    const file = join(folder.path, 'larger.bin');
    writeFileSync(file, Buffer.alloc(400 * 1024 * 1024, 'large'));
    const first = await runDarkroom(['put', key, '-'], {
      environment,
      stdin: Buffer.from('before'),
    });
    expect(first.status).toBe(0);
    const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
    onTestFinished(() => client.destroy());
    const listUploads = async () =>
      (await client.send(new ListMultipartUploadsCommand({ Bucket: 'commands' }))).Uploads ?? [];
    const running = startDarkroom(['put', key, file], environment);
    onTestFinished(() => void running.child.kill('SIGKILL'));
    await expect.poll(listUploads, { interval: 20, timeout: 10_000 }).toHaveLength(1);
    const [{ UploadId } = {}] = await listUploads();
    const upload = { Bucket: 'commands', Key: key, UploadId };
    const countParts = async () =>
      (await client.send(new ListPartsCommand(upload))).Parts?.length ?? 0;
    await expect.poll(countParts, { interval: 20, timeout: 10_000 }).toBeGreaterThan(1);
    running.child.kill('SIGINT');
    expect([await running.ended, running.stderr()]).toEqual([
      'SIGINT',
      'darkroom: stopped; nothing was stored\n',
    ]);
    expect(await listUploads()).toEqual([]);
    await expect(countParts()).rejects.toMatchObject({ name: expect.stringMatching(/^NoSuch/) });
    const back = await run('render', `/${key}`, '-');
    expect(back.stdout.toString()).toBe('before');
  });

  test('finds no fault', async () => {
    const { status, stdout, stderr } = await run('check');
    expect([status, stderr]).toEqual([0, '']);
    expect([...stdout.toString().matchAll(/^([\w ]+):/gm)].map(([, found]) => found)).toEqual(
      'settings,storage,missing original,listing,reading,renderings,workers'
        .split(',')
        .map((subject) => `ok     ${subject}`),
    );
    expect(stdout.toString()).not.toContain(secretAccessKey);
  });

  test.each([
    [{ AWS_SECRET_ACCESS_KEY: 'wrong' }, 'SignatureDoesNotMatch', 'renderings'],
    [{ S3_BUCKET: 'no-such-bucket' }, 'NoSuchBucket', 'listing'],
  ])('finds what is wrong with %j', async (wrong, cause, other) => {
    const { status, stdout } = await runDarkroom(['check'], {
      environment: { ...environment, ...wrong },
    });
    expect(status).toBe(1);
    for (const subject of ['missing original', other]) {
      expect(stdout.toString()).toMatch(new RegExp(`^FAULT {2}${subject}: .*${cause}`, 'm'));
    }
  });
});
