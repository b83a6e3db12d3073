import { readFileSync } from 'node:fs';
import {
  GetBucketLifecycleConfigurationCommand,
  PutBucketLifecycleConfigurationCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import {
  addressOf,
  describeResultStore,
  resultOf,
} from '../storage/contracts/result-store.contract.ts';
import { createS3ResultFixture, openBucket, type S3Bucket } from '../support/s3/s3-bucket.ts';

const { endpoint, accessKeyId, secretAccessKey } = inject('rgw');
Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
});

let bucket: S3Bucket;
beforeAll(async () => {
  bucket = openBucket(endpoint, 'results');
  await bucket.create();
});

describeResultStore('Ceph RGW', async () => createS3ResultFixture(bucket));

describe('on Ceph RGW', () => {
  test('a removal goes on behind the thousandth object', async () => {
    const { store } = createS3ResultFixture(bucket);
    const numbers = Array.from({ length: 1_100 }, (_, number) => number);
    const writeAll = async (): Promise<void> => {
      for (let number = numbers.pop(); number !== undefined; number = numbers.pop()) {
        await store.write(addressOf({ originKey: `avatars/1/${number}` }), resultOf('a'));
      }
    };
    await Promise.all(Array.from({ length: 8 }, writeAll));
    await store.write(addressOf({ originKey: 'avatars/12/1' }), resultOf('b'));
    expect(await store.remove('avatars/1/')).toBe(1_100);
    expect(await store.remove('avatars/')).toBe(1);
  });

  test('the lifecycle rule that is shipped is taken', async () => {
    const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
    const rule = JSON.parse(readFileSync('deploy/s3-lifecycle.json', 'utf8'));
    const target = { Bucket: 'results' };
    await client.send(
      new PutBucketLifecycleConfigurationCommand({ ...target, LifecycleConfiguration: rule }),
    );
    const { Rules } = await client.send(new GetBucketLifecycleConfigurationCommand(target));
    expect(Rules).toMatchObject([{ Status: 'Enabled', Expiration: { Days: 30 } }]);
    client.destroy();
  });
});
