import { randomUUID } from 'node:crypto';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { S3Origin, type S3OriginOptions } from '../../../src/storage/s3/s3-origin.ts';
import {
  S3ResultStore,
  type S3ResultStoreOptions,
} from '../../../src/storage/s3/s3-result-store.ts';
import type { OriginFixture } from '../../storage/contracts/origin.contract.ts';
import type { ResultStoreFixture } from '../../storage/contracts/result-store.contract.ts';

/** A bucket that tests may write to. */
export interface S3Bucket {
  readonly endpoint: string;
  readonly bucket: string;
  /** Makes the bucket itself, where the server has not. */
  readonly create: () => Promise<void>;
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
    create: async () => {
      await client.send(new CreateBucketCommand({ Bucket: bucket }));
    },
    put: async (Key, Body) => {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
    },
    remove: async (Key) => {
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
    },
  };
}

/** What all adapters of a bucket have in common, as the configuration would have it. */
function bucketOptions({ endpoint, bucket }: Pick<S3Bucket, 'endpoint' | 'bucket'>) {
  return {
    bucket,
    endpoint,
    prefix: '',
    region: 'us-east-1',
    forcePathStyle: true,
    maxConnections: 8,
    connectTimeoutMs: 2_000,
  };
}

/** Options of an origin on a bucket. */
export function s3Options(
  bucket: Pick<S3Bucket, 'endpoint' | 'bucket'>,
  options: Partial<S3OriginOptions> = {},
): S3OriginOptions {
  return { ...bucketOptions(bucket), stallTimeoutMs: 30_000, ...options };
}

/** An origin under test, below a prefix of its own, which is as good as a bucket of its own. */
export function createS3Fixture(bucket: S3Bucket): OriginFixture {
  const prefix = `${randomUUID()}/`;
  return {
    origin: new S3Origin(s3Options(bucket, { prefix })),
    put: (key, bytes) => bucket.put(prefix + key, bytes),
    remove: (key) => bucket.remove(prefix + key),
    close: async () => undefined,
  };
}

/** Options of a result store on a bucket. */
export function s3ResultOptions(
  bucket: Pick<S3Bucket, 'endpoint' | 'bucket'>,
  options: Partial<S3ResultStoreOptions> = {},
): S3ResultStoreOptions {
  return { ...bucketOptions(bucket), timeoutMs: 30_000, maxObjectBytes: 1_000_000, ...options };
}

/** A result store under test, below a prefix of its own. */
export function createS3ResultFixture(bucket: S3Bucket): ResultStoreFixture {
  const prefix = `${randomUUID()}/`;
  return {
    store: new S3ResultStore(s3ResultOptions(bucket, { prefix })),
    close: async () => undefined,
  };
}
