import { beforeAll, inject } from 'vitest';
import { describeResultStore } from '../contracts/result-store.contract.ts';
import { createS3ResultFixture, openBucket, type S3Bucket } from '../support/s3-bucket.ts';

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
