import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import {
  CreateBucketCommand,
  GetBucketLifecycleConfigurationCommand,
  GetObjectCommand,
  PutBucketLifecycleConfigurationCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { rgw } from '../support/s3/rgw.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const { endpoint } = rgw;
const s3 = new S3Client({
  endpoint,
  region: 'us-east-1',
  forcePathStyle: true,
  requestChecksumCalculation: 'WHEN_REQUIRED',
});

const { path: samples, put } = await useTemporaryDirectory();
for (const id of ['1', '2', '14']) await put(`emojis/${id}`, `sample ${id}`);

/** Runs the command of compose.yaml; `name` must be unique among the tests. */
function prepare(name: string, settings: Readonly<Record<string, string>> = {}) {
  const env = {
    ...process.env,
    S3_ENDPOINT: endpoint,
    S3_REGION: 'us-east-1',
    AWS_EC2_METADATA_DISABLED: 'true',
    S3_BUCKET: `${name}-originals`,
    RESULT_S3_BUCKET: `${name}-renderings`,
    ...settings,
  };
  return new Promise<{ readonly isDone: boolean; readonly lines: readonly string[] }>((resolve) => {
    execFile(process.execPath, ['deploy/prepare-buckets.mjs'], { env }, (error, stdout) => {
      resolve({ isDone: error === null, lines: stdout.trimEnd().split('\n') });
    });
  });
}

/** Returns the lifecycle rules of the renderings; the server fails if the bucket has no rules. */
async function rulesOf(name: string) {
  const Bucket = `${name}-renderings`;
  const { Rules } = await s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
  return Rules?.map(({ ID, Expiration }) => [ID, Expiration?.Days]);
}

const { Rules: shipped } = JSON.parse(readFileSync('deploy/s3-lifecycle.json', 'utf8'));
const shippedRules = [[shipped[0].ID, shipped[0].Expiration.Days]];

test('creates two buckets with a lifecycle rule for renderings, even after an interrupted run', async () => {
  const broken = await prepare('plain', { LIFECYCLE_FILE: `${samples}/nothing.json` });
  expect(broken.isDone).toBe(false);
  expect(broken.lines).toContain('bucket plain-renderings: created');
  await expect(rulesOf('plain')).rejects.toMatchObject({ $metadata: { httpStatusCode: 404 } });
  for (const lifecycle of ['set', 'exists']) {
    expect(await prepare('plain')).toEqual({
      isDone: true,
      lines: [
        'bucket plain-originals: exists',
        'bucket plain-renderings: exists',
        `bucket plain-renderings: lifecycle ${lifecycle}`,
      ],
    });
    expect(await rulesOf('plain')).toEqual(shippedRules);
  }
});

test('keeps existing lifecycle rules', async () => {
  const Bucket = 'own-renderings';
  await s3.send(new CreateBucketCommand({ Bucket }));
  const rule = { ID: 'own', Filter: { Prefix: '' }, Expiration: { Days: 7 } };
  const LifecycleConfiguration = { Rules: [{ ...rule, Status: 'Enabled' as const }] };
  await s3.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration }));
  expect((await prepare('own')).isDone).toBe(true);
  expect(await rulesOf('own')).toEqual([['own', 7]]);
});

test('uploads each missing sample, and keeps those that exist', async () => {
  const Bucket = 'filled-originals';
  const read = async (Key: string) => {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key }));
    return Body?.transformToString();
  };
  await prepare('filled');
  // The key of this object begins with the key of a sample.
  await s3.send(new PutObjectCommand({ Bucket, Key: 'emojis/14', Body: 'own' }));
  const first = await prepare('filled', { SAMPLES_DIR: samples });
  expect(first.lines.at(-1)).toBe('bucket filled-originals: 2 sample originals uploaded');
  expect(await read('emojis/1')).toBe('sample 1');
  expect(await read('emojis/2')).toBe('sample 2');
  expect(await read('emojis/14')).toBe('own');
  const second = await prepare('filled', { SAMPLES_DIR: samples });
  expect(second.lines.at(-1)).toBe('bucket filled-originals: 0 sample originals uploaded');
});
