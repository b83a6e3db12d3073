import { describe, expect, test } from 'vitest';
import { describeOrigin } from '../storage/contracts/origin.contract.ts';
import { describeOriginalWriter } from '../storage/contracts/original-writer.contract.ts';
import {
  addressOf,
  describeResultStore,
  resultOf,
} from '../storage/contracts/result-store.contract.ts';
import { describeSharedObjects } from '../storage/contracts/shared-objects.contract.ts';
import { createRgwBucket } from '../support/s3/rgw.ts';
import { createS3Fixture, openBucketObjects, openBucketStore } from '../support/s3/s3-bucket.ts';

const bucket = await createRgwBucket('contracts');

describeOrigin('Ceph RGW', async () => createS3Fixture(bucket));
describeOriginalWriter('Ceph RGW', async () => createS3Fixture(bucket));
describeResultStore('Ceph RGW', async () => openBucketStore(bucket));
describeSharedObjects('Ceph RGW', async () => openBucketObjects(bucket));

describe('on Ceph RGW', () => {
  test('a purge removes more than a thousand objects', async () => {
    const store = openBucketStore(bucket);
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
});
