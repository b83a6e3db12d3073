import { beforeAll, inject } from 'vitest';
import { describeOriginalWriter } from '../storage/contracts/original-writer.contract.ts';
import { openBucket, type S3Bucket } from '../support/s3/s3-bucket.ts';
import { createS3WriterFixture } from '../support/s3/s3-original-writer.ts';

const { endpoint, accessKeyId, secretAccessKey } = inject('rgw');
Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
});

let bucket: S3Bucket;
beforeAll(async () => {
  bucket = openBucket(endpoint, 'writer');
  await bucket.create();
});

describeOriginalWriter('Ceph RGW', async () => createS3WriterFixture(bucket));
