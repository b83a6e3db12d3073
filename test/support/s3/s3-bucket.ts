import { randomUUID } from 'node:crypto';
import {
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { createS3Listing } from '../../../src/storage/s3/listing.ts';
import { createS3Origin } from '../../../src/storage/s3/origin.ts';
import { S3ResultStore } from '../../../src/storage/s3/s3-result-store.ts';
import { S3Objects } from '../../../src/storage/s3/shared-objects.ts';
import { S3OriginalWriter } from '../../../src/storage/s3/writer.ts';
import type { OriginFixture } from '../../storage/contracts/origin.contract.ts';
import type { OriginalWriterFixture } from '../../storage/contracts/original-writer.contract.ts';
import type { OriginalWriter } from '../directory-storage.ts';

type Place = Pick<S3Bucket, 'endpoint' | 'bucket'>;

/** A bucket that tests can write to. */
export type S3Bucket = ReturnType<typeof openBucket>;

/** Opens a bucket for writing, with the credentials of the environment. */
export function openBucket(endpoint: string, bucket: string) {
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  return {
    endpoint,
    bucket,
    client,
    put: async (Key: string, Body: Uint8Array) => {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
    },
    /** Lists at most a thousand keys. */
    list: async (): Promise<readonly string[]> => {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
      return Contents.map(({ Key = '' }) => Key);
    },
    remove: async (Key: string) => {
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
    },
  };
}

/** Options of all adapters of a bucket, as the configuration would set them. */
function optionsOf({ endpoint, bucket }: Place) {
  return {
    bucket,
    endpoint,
    prefix: '',
    region: 'us-east-1',
    forcePathStyle: true,
    maxConnections: 8,
    connectTimeoutMs: 2_000,
    timeoutMs: 30_000,
  };
}

type BucketOptions = ReturnType<typeof optionsOf> & { readonly stallTimeoutMs: number };

/** Opens a bucket as the origin. */
export const openBucketOrigin = (
  place: Place,
  { stallTimeoutMs = 30_000, ...options }: Partial<BucketOptions> = {},
) => createS3Origin({ ...optionsOf(place), ...options }, stallTimeoutMs);

export const openBucketListing = (place: Place, prefix: string) =>
  createS3Listing({ ...optionsOf(place), prefix });

/** Opens a bucket to write originals. */
export const openBucketWriter = (place: Place, prefix = ''): OriginalWriter =>
  new S3OriginalWriter({ ...optionsOf(place), prefix });

/** Opens a bucket as a result store, by default below a new prefix. */
export const openBucketStore = (place: Place, prefix = `${randomUUID()}/`) =>
  new S3ResultStore({ ...optionsOf(place), prefix });

/** Opens shared objects next to a new key. */
export const openBucketObjects = (place: Place) =>
  new S3Objects({ ...optionsOf(place), key: randomUUID() });

/** Opens an origin and a writer below a new prefix, which isolates them like a bucket. */
export function createS3Fixture(bucket: S3Bucket): OriginFixture & OriginalWriterFixture {
  const prefix = `${randomUUID()}/`;
  const ofPrefix = { Bucket: bucket.bucket, Prefix: prefix };
  return {
    origin: openBucketOrigin(bucket, { prefix }),
    put: (key, bytes) => bucket.put(prefix + key, bytes),
    writer: openBucketWriter(bucket, prefix),
    list: async () => {
      const { Contents = [] } = await bucket.client.send(new ListObjectsV2Command(ofPrefix));
      const uploads = new ListMultipartUploadsCommand(ofPrefix);
      const { Uploads = [] } = await bucket.client.send(uploads).catch((error: Error) => {
        // s3rver does not list uploads; Ceph does.
        if (error.name !== 'NotImplemented') throw error;
        return { Uploads: [] };
      });
      return [...Contents, ...Uploads].map(({ Key = '' }) => Key.slice(prefix.length));
    },
  };
}
