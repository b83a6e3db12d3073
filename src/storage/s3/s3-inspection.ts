import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import type { StorageListing } from '../storage-listing.ts';
import {
  createS3Client,
  describeS3Failure,
  readS3Failure,
  type S3BucketOptions,
} from './s3-client.ts';

/** What a server says when it is asked for a list. */
export interface S3Inspection {
  readonly listing: StorageListing;
  /**
   * How far this clock is ahead of the server's, in milliseconds, by the `Date` of its first answer,
   * which counts in seconds; `undefined` where none came.
   */
  readonly clockAheadMs: number | undefined;
}

/**
 * Asks a bucket for the first of its keys. The clocks are compared by hand: the SDK notices from its
 * first refusal how far off it is, and signs accordingly from then on.
 *
 * @throws signal.reason
 */
export async function inspectBucket(
  options: S3BucketOptions,
  maxKeys: number,
  signal: AbortSignal,
): Promise<S3Inspection> {
  const client = createS3Client(options);
  const { bucket: Bucket, prefix: Prefix } = options;
  let clockAheadMs: number | undefined;
  client.middlewareStack.add(
    (next) => async (args) => {
      const answer = await next(args);
      clockAheadMs ??= measureClock(answer.response);
      return answer;
    },
    // Nearest to the wire: refusals have a date, too.
    { step: 'deserialize', priority: 'low' },
  );
  try {
    const command = new ListObjectsV2Command({ Bucket, Prefix, MaxKeys: maxKeys });
    const { Contents = [], IsTruncated } = await client.send(command, { abortSignal: signal });
    const keys = Contents.flatMap(({ Key }) => (Key === undefined ? [] : Key.slice(Prefix.length)));
    return { listing: { kind: 'listed', keys, isPart: IsTruncated === true }, clockAheadMs };
  } catch (error) {
    signal.throwIfAborted();
    const isConnecting = error instanceof MediaError;
    const failure = readS3Failure(error);
    const cause = isConnecting ? error.cause : await describeS3Failure(client, failure);
    return {
      listing: { kind: 'failed', cause, isDenied: failure.name === 'AccessDenied' },
      clockAheadMs,
    };
  } finally {
    client.destroy();
  }
}

/** The SDK's answers have headers by lower-case name. */
function measureClock(response: unknown): number | undefined {
  const headers = isObject(response) && 'headers' in response ? response.headers : undefined;
  const date = isObject(headers) && 'date' in headers ? headers.date : undefined;
  const serverMs = typeof date === 'string' ? Date.parse(date) : Number.NaN;
  return Number.isNaN(serverMs) ? undefined : Date.now() - serverMs;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
