import { beforeAll, inject } from 'vitest';
import { describeOrigin } from '../storage/contracts/origin.contract.ts';
import { createS3Fixture, openBucket, type S3Bucket } from '../support/s3/s3-bucket.ts';

const { endpoint, accessKeyId, secretAccessKey } = inject('rgw');
Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
});

let bucket: S3Bucket;
beforeAll(async () => {
  bucket = openBucket(endpoint, 'contract');
  await bucket.create();
});

describeOrigin('Ceph RGW', async () => createS3Fixture(bucket));
