import { randomUUID } from 'node:crypto';
import { ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import type { OriginalWriterFixture } from '../../storage/contracts/original-writer.contract.ts';
import { openBucketOrigin, openBucketWriter, type S3Bucket } from './s3-bucket.ts';

/** A writer under test, below a prefix of its own. */
export function createS3WriterFixture(bucket: S3Bucket): OriginalWriterFixture {
  const prefix = `${randomUUID()}/`;
  const { endpoint, bucket: Bucket } = bucket;
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
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
    close: async () => client.destroy(),
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
