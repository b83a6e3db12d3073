import { DeleteObjectCommand, type ListObjectsV2Command, type S3Client } from '@aws-sdk/client-s3';
import { isResultPath } from '../../pipeline/ports.ts';
import { listObjects } from './listing.ts';

/** Objects to remove, and the deadline of each request. */
export interface S3Removal {
  readonly bucket: string;
  /** Prefix of keys; not empty. */
  readonly prefix: string;
  /** Passes a signal that aborts after the deadline of one request. */
  readonly within: <Result>(request: (signal: AbortSignal) => Promise<Result>) => Promise<Result>;
}

/** Concurrent requests. Not one for many keys: servers disagree about the checksum that it needs. */
const MAX_REQUESTS = 8;

/**
 * Removes all objects whose keys begin with a prefix, page by page.
 *
 * @returns the number of removed objects
 * @throws Error of the SDK, for an object that the server does not remove, and for an incomplete list; some objects may
 *   then be removed
 */
export async function removeObjects(client: S3Client, removal: S3Removal): Promise<number> {
  const { bucket, prefix, within } = removal;
  const send = (command: ListObjectsV2Command) =>
    within((abortSignal) => client.send(command, { abortSignal }));
  let removed = 0;
  for await (const objects of listObjects(bucket, prefix, send)) {
    // Only renderings, in case that the bucket also has originals under another name.
    const renderings = objects.map(({ key }) => key).filter(isResultPath);
    if (renderings.length > 0) await removeKeys(client, removal, renderings);
    removed += renderings.length;
  }
  return removed;
}

async function removeKeys(
  client: S3Client,
  { bucket, within }: S3Removal,
  keys: readonly string[],
): Promise<void> {
  const waiting = [...keys];
  const removeOneByOne = async (): Promise<void> => {
    for (let Key = waiting.pop(); Key !== undefined; Key = waiting.pop()) {
      const command = new DeleteObjectCommand({ Bucket: bucket, Key });
      await within((abortSignal) => client.send(command, { abortSignal }));
    }
  };
  await Promise.all(Array.from({ length: MAX_REQUESTS }, removeOneByOne));
}
