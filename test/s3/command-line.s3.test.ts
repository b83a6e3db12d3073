import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ListMultipartUploadsCommand, ListPartsCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { runDarkroom, startDarkroom } from '../support/processes/command-line.ts';
import { openBucket } from '../support/s3/s3-bucket.ts';

const { endpoint, accessKeyId, secretAccessKey } = inject('rgw');
const credentials = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
Object.assign(process.env, credentials);

const environment = {
  STORAGE: 's3',
  S3_BUCKET: 'commands',
  S3_ENDPOINT: endpoint,
  RESULT_STORE: 's3',
  RESULT_S3_BUCKET: 'commands-results',
  AWS_EC2_METADATA_DISABLED: 'true',
  ...credentials,
};

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'darkroom-'));
  for (const name of ['commands', 'commands-results']) await openBucket(endpoint, name).create();
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('the command line on Ceph RGW', () => {
  test('puts an image and a large file, and renders them', async () => {
    const image = await runDarkroom(['put', 'avatars/1/ab12', 'fixtures/originals/icons/1/ab12'], {
      environment,
    });
    expect([image.status, image.stderr]).toEqual([0, '']);
    const rendered = await runDarkroom(['render', '/avatars/1/ab12.webp?size=16', '-'], {
      environment,
    });
    expect(rendered.stderr).toMatch(/^200, image\/webp, 16 x /);

    const bytes = randomBytes(40 * 1024 * 1024);
    const file = join(folder, 'large.bin');
    writeFileSync(file, bytes);
    const large = await runDarkroom(['put', 'attachments/1/2/large.bin', file], { environment });
    expect([large.status, large.stderr]).toEqual([0, '']);
    const back = await runDarkroom(['render', '/attachments/1/2/large.bin', '-'], { environment });
    expect(back.stdout.equals(bytes)).toBe(true);
  });

  test('leaves no part of an upload behind that ^C has stopped, nor another original', async () => {
    const key = 'attachments/1/3/large.bin';
    const file = join(folder, 'larger.bin');
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
    const back = await runDarkroom(['render', `/${key}`, '-'], { environment });
    expect(back.stdout.toString()).toBe('before');
  });

  test('finds nothing to complain of', async () => {
    const { status, stdout, stderr } = await runDarkroom(['check'], { environment });
    expect([status, stderr]).toEqual([0, '']);
    expect(
      stdout
        .toString()
        .split('\n')
        .map((line) => line.split(':')[0]),
    ).toEqual([
      'ok     settings',
      'ok     storage',
      'ok     missing original',
      'ok     listing',
      'ok     reading',
      'ok     clock',
      'ok     renderings',
      'ok     workers',
      '',
    ]);
    expect(stdout.toString()).not.toContain(secretAccessKey);
  });

  test('tells of wrong credentials, and of a bucket that is not there', async () => {
    const wrong = await runDarkroom(['check'], {
      environment: { ...environment, AWS_SECRET_ACCESS_KEY: 'wrong' },
    });
    expect(wrong.status).toBe(1);
    expect(wrong.stdout.toString()).toMatch(/^FAULT {2}missing original: .*SignatureDoesNotMatch/m);
    expect(wrong.stdout.toString()).toMatch(/^FAULT {2}renderings: .*SignatureDoesNotMatch/m);
    const missing = await runDarkroom(['check'], {
      environment: { ...environment, S3_BUCKET: 'no-such-bucket' },
    });
    expect(missing.status).toBe(1);
    expect(missing.stdout.toString()).toMatch(/^FAULT {2}missing original: .*NoSuchBucket/m);
    expect(missing.stdout.toString()).toMatch(/^FAULT {2}listing: .*NoSuchBucket/m);
  });
});
