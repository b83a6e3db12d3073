import { DeleteObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { S3OriginOptions } from '../../src/adapters/s3-origin.ts';

/** A bucket that tests may write to. */
export interface S3Bucket {
  readonly endpoint: string;
  readonly bucket: string;
  readonly put: (key: string, bytes: Uint8Array) => Promise<void>;
  readonly remove: (key: string) => Promise<void>;
}

/** Opens a bucket for writing, with the credentials of the environment. */
export function openBucket(endpoint: string, bucket: string): S3Bucket {
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  return {
    endpoint,
    bucket,
    put: async (Key, Body) => {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
    },
    remove: async (Key) => {
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
    },
  };
}

/** Options of an origin on a bucket, as the configuration would have them. */
export function s3Options(
  { endpoint, bucket }: S3Bucket,
  options: Partial<S3OriginOptions> = {},
): S3OriginOptions {
  return {
    bucket,
    endpoint,
    prefix: '',
    region: 'us-east-1',
    forcePathStyle: true,
    maxConnections: 8,
    connectTimeoutMs: 2_000,
    stallTimeoutMs: 30_000,
    ...options,
  };
}
