import { createHash } from 'node:crypto';
import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  type ListObjectsV2Command,
  type S3Client,
} from '@aws-sdk/client-s3';
import { isResultPath } from '../../pipeline/results/result-path.ts';
import { readS3Failure } from './s3-client.ts';
import { listObjects } from './s3-listing.ts';

/** Objects to remove, and the deadline of each request. */
export interface S3Removal {
  readonly bucket: string;
  /** Prefix of keys; not empty. */
  readonly prefix: string;
  /** Passes a signal that aborts after the deadline of one request. */
  readonly within: <Result>(request: (signal: AbortSignal) => Promise<Result>) => Promise<Result>;
}

/** Concurrent requests to servers that accept only one key in each. */
const SINGLE_REQUESTS = 8;

/**
 * Removes all objects whose keys begin with a prefix, page by page, up to 1000 at a time.
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
  const command = new DeleteObjectsCommand({
    Bucket: bucket,
    Delete: { Objects: keys.map((Key) => ({ Key })), Quiet: true },
  });
  summarizeByMd5(command);
  try {
    const { Errors = [] } = await within((abortSignal) => client.send(command, { abortSignal }));
    const [first] = Errors.filter(({ Code }) => Code !== 'NoSuchKey');
    if (first === undefined) return;
    throw new Error(`${first.Key} is not removed: ${first.Code} ${first.Message}`);
  } catch (error) {
    const { status = 500 } = readS3Failure(error);
    if (status >= 500 && status !== 501) throw error;
  }
  // Rejected as a whole: some servers do not know the request, or require another checksum.
  const waiting = [...keys];
  const removeOneByOne = async (): Promise<void> => {
    for (let Key = waiting.pop(); Key !== undefined; Key = waiting.pop()) {
      const single = new DeleteObjectCommand({ Bucket: bucket, Key });
      await within((abortSignal) => client.send(single, { abortSignal }));
    }
  };
  await Promise.all(Array.from({ length: SINGLE_REQUESTS }, removeOneByOne));
}

/**
 * Adds the checksum that every server knows. S3 requires one for this request, and accepted only MD5 until 2022, as do
 * compatible servers; the SDK sends only CRC-32, whatever its settings (aws-sdk-js-v3, `MD5_FALLBACK.md`; its issues
 * 6819 and 6920).
 */
function summarizeByMd5(command: DeleteObjectsCommand): void {
  command.middlewareStack.add(
    (next) => (call) => {
      const { headers, body } = call.request as { headers: Record<string, string>; body: string };
      for (const name of Object.keys(headers)) {
        if (/^x-amz-(sdk-)?checksum-/i.test(name)) delete headers[name];
      }
      headers['Content-MD5'] = createHash('md5').update(body).digest('base64');
      return next(call);
    },
    { step: 'build', priority: 'low', name: 'summarizeByMd5' },
  );
}
