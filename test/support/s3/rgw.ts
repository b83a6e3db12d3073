import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { inject } from 'vitest';
import { openBucket, type S3Bucket } from './s3-bucket.ts';

const { endpoint, accessKeyId, secretAccessKey } = inject('rgw');

/** The gateway of this run, with credentials as the SDK and every command read them. */
export const rgw = {
  endpoint,
  accessKeyId,
  secretAccessKey,
  credentials: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
} as const;

Object.assign(process.env, rgw.credentials);

/** Creates a bucket; `name` must be unique among all tests. */
export async function createRgwBucket(name: string): Promise<S3Bucket> {
  const bucket = openBucket(endpoint, name);
  await bucket.client.send(new CreateBucketCommand({ Bucket: name }));
  return bucket;
}
