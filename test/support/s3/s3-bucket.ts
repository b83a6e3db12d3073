import { randomUUID } from 'node:crypto';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { SharedObjects } from '../../../src/pipeline/blocks/ports.ts';
import type { OriginListing, ResultStore, Source } from '../../../src/pipeline/ports.ts';
import { createS3Listing } from '../../../src/storage/s3/listing.ts';
import { createS3Origin, type S3OriginOptions } from '../../../src/storage/s3/origin.ts';
import { S3ResultStore } from '../../../src/storage/s3/s3-result-store.ts';
import { S3Objects } from '../../../src/storage/s3/shared-objects.ts';
import { S3OriginalWriter } from '../../../src/storage/s3/writer.ts';
import type { OriginFixture } from '../../storage/contracts/origin.contract.ts';
import type { OriginalWriterFixture } from '../../storage/contracts/original-writer.contract.ts';
import { atEnd } from '../at-end.ts';
import type { OriginalWriter } from '../folder-storage.ts';

export type { S3OriginOptions };

/** Where a bucket is. */
type Place = Pick<S3Bucket, 'endpoint' | 'bucket'>;

/** A bucket that tests may write to. */
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
    /** Makes the bucket itself, where the server has not. */
    create: async () => {
      await client.send(new CreateBucketCommand({ Bucket: bucket }));
    },
    put: async (Key: string, Body: Uint8Array) => {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
    },
    remove: async (Key: string) => {
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
    },
  };
}

/** What all adapters of a bucket have in common, as the configuration would have it. */
function optionsOf({ endpoint, bucket }: Place) {
  return {
    bucket,
    endpoint,
    prefix: '',
    region: 'us-east-1',
    forcePathStyle: true,
    maxConnections: 8,
    connectTimeoutMs: 2_000,
    stallTimeoutMs: 30_000,
    timeoutMs: 30_000,
  };
}

/** Opens a bucket as the origin. */
export function openBucketOrigin(place: Place, options: Partial<S3OriginOptions> = {}): Source {
  return createS3Origin({ ...optionsOf(place), ...options });
}

/** Opens the list of a bucket. */
export function openBucketListing(place: Place, prefix: string): OriginListing {
  return createS3Listing({ ...optionsOf(place), prefix });
}

/** Opens a bucket to write originals. */
export function openBucketWriter(place: Place, prefix = ''): OriginalWriter {
  return new S3OriginalWriter({ ...optionsOf(place), prefix });
}

/** Opens a bucket as a result store, below a prefix of its own unless one is given. */
export function openBucketStore(place: Place, prefix = `${randomUUID()}/`): ResultStore {
  return new S3ResultStore({ ...optionsOf(place), prefix });
}

/** Opens shared objects beside a key of their own. */
export function openBucketObjects(place: Place, key: string = randomUUID()): SharedObjects {
  return new S3Objects({ ...optionsOf(place), key });
}

/** An origin under test, below a prefix of its own, which is as good as a bucket of its own. */
export function createS3Fixture(bucket: S3Bucket): OriginFixture {
  const prefix = `${randomUUID()}/`;
  return {
    origin: openBucketOrigin(bucket, { prefix }),
    put: (key, bytes) => bucket.put(prefix + key, bytes),
  };
}

/** A writer under test, below a prefix of its own. */
export function createS3WriterFixture(bucket: S3Bucket): OriginalWriterFixture {
  const prefix = `${randomUUID()}/`;
  const { endpoint, bucket: Bucket } = bucket;
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
  atEnd(() => client.destroy());
  return {
    writer: openBucketWriter(bucket, prefix),
    origin: openBucketOrigin(bucket, { prefix }),
    list: async () => {
      const objects = await client.send(new ListObjectsV2Command({ Bucket, Prefix: prefix }));
      const uploads = await listUploads(client, Bucket, prefix);
      return [...(objects.Contents ?? []), ...uploads].map(({ Key = '' }) =>
        Key.slice(prefix.length),
      );
    },
  };
}

async function listUploads(client: S3Client, Bucket: string, Prefix: string) {
  try {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix }));
    return Uploads;
  } catch (error) {
    // The server in this process has no such list; Ceph has.
    if (error instanceof Error && error.name === 'NotImplemented') return [];
    throw error;
  }
}
