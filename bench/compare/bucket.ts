import { existsSync } from 'node:fs';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { startCephRgw } from '../../test/support/ceph-rgw.ts';

/** Where Debian has them. */
const PROGRAMS = ['ceph-mon', 'ceph-osd', 'radosgw', 'ceph'].map((name) => `/usr/bin/${name}`);

/** What is missing for a bucket of a Ceph RGW; `undefined` if nothing is. */
export function missingCeph(): string | undefined {
  return PROGRAMS.every((program) => existsSync(program))
    ? undefined
    : 'needs a Ceph RGW (Debian: ceph-mon ceph-osd ceph-common radosgw)';
}

/** A bucket of a Ceph RGW on this machine, which anybody may read. */
export interface PublicBucket {
  readonly endpoint: string;
  readonly bucket: string;
  /** For the service. */
  readonly settings: Readonly<Record<string, string>>;
  readonly stop: () => Promise<void>;
}

/** Starts a Ceph RGW, and puts one object into a new bucket. */
export async function startBucket(key: string, bytes: Buffer): Promise<PublicBucket> {
  const { endpoint, accessKeyId, secretAccessKey, stop } = await startCephRgw();
  const bucket = 'originals';
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  try {
    await client.send(new CreateBucketCommand({ Bucket: bucket }));
    const object = { Bucket: bucket, Key: key, Body: bytes, ACL: 'public-read' } as const;
    await client.send(new PutObjectCommand(object));
  } catch (error) {
    await stop();
    throw error;
  } finally {
    client.destroy();
  }
  return {
    endpoint,
    bucket,
    settings: {
      STORAGE: 's3',
      S3_BUCKET: bucket,
      S3_ENDPOINT: endpoint,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_EC2_METADATA_DISABLED: 'true',
    },
    stop,
  };
}
