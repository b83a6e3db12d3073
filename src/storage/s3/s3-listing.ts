import {
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import type { ListedOriginal, OriginListing } from '../../pipeline/ports.ts';
import { createS3Client, findS3Cause, isPossibleKey, type S3BucketOptions } from './s3-client.ts';

/** Tells what is in the bucket of an `S3Origin`, page by page; it takes the right to list (`s3:ListBucket`). */
export class S3Listing implements OriginListing {
  readonly #client: S3Client;
  readonly #options: S3BucketOptions;
  #clockAheadMs: number | undefined;

  constructor(options: S3BucketOptions) {
    this.#client = createS3Client(options);
    this.#options = options;
    this.#client.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        this.#clockAheadMs ??= measureClock(result.response);
        return result;
      },
      // Nearest to the wire: refusals have a date, too.
      { step: 'deserialize', priority: 'low' },
    );
  }

  /**
   * How far this clock is ahead of the server's, in milliseconds, by the `Date` of its first response,
   * which counts in seconds; `undefined` where none came. Measured by hand: the SDK notices from its first
   * refusal how far off it is, and signs accordingly from then on.
   */
  get clockAheadMs(): number | undefined {
    return this.#clockAheadMs;
  }

  async list(
    prefix: string,
    visit: (original: ListedOriginal) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { bucket, prefix: root } = this.#options;
    const send = (command: ListObjectsV2Command) =>
      this.#client.send(command, { abortSignal: signal });
    try {
      signal.throwIfAborted();
      for await (const objects of listObjects(bucket, root + prefix, send)) {
        for (const { key, sizeBytes } of objects) {
          if (!isPossibleKey(key)) continue;
          if (!visit({ key: key.slice(root.length), sizeBytes })) return;
        }
        signal.throwIfAborted();
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof MediaError) throw error;
      throw new MediaError('ORIGIN_ERROR', { cause: await findS3Cause(this.#client, error) });
    }
  }
}

/**
 * Lists the objects whose keys begin with a text, page by page, up to 1000 at a time.
 *
 * @param prefix of keys
 * @param send asks the server
 * @throws Error if a key does not begin with it: a server that does not know the parameter lists the whole
 *   bucket; if there is more, and no token that leads to it: what was listed is not all; what `send` throws
 */
export async function* listObjects(
  bucket: string,
  prefix: string,
  send: (command: ListObjectsV2Command) => Promise<ListObjectsV2CommandOutput>,
): AsyncGenerator<readonly ListedOriginal[], void> {
  let ContinuationToken: string | undefined;
  do {
    // Encoded, because XML 1.0 cannot say every character of a file name.
    const input = {
      Bucket: bucket,
      Prefix: prefix,
      EncodingType: 'url',
      ContinuationToken,
    } as const;
    const page: ListObjectsV2CommandOutput = await send(new ListObjectsV2Command(input));
    const { IsTruncated, NextContinuationToken } = page;
    yield readPage(page, prefix);
    if (IsTruncated === true && !NextContinuationToken) {
      throw new Error('The server lists a part, and tells no way to the rest.');
    }
    ContinuationToken = IsTruncated === true ? NextContinuationToken : undefined;
  } while (ContinuationToken !== undefined);
}

function readPage(
  { Contents = [], EncodingType }: ListObjectsV2CommandOutput,
  prefix: string,
): ListedOriginal[] {
  const objects = Contents.flatMap(({ Key, Size = 0 }) => {
    if (Key === undefined) return [];
    // A plus sign itself is encoded; servers that leave the encoding out do not name it either.
    const key = EncodingType === 'url' ? decodeURIComponent(Key.replaceAll('+', '%20')) : Key;
    return [{ key, sizeBytes: Size }];
  });
  const stranger = objects.find(({ key }) => !key.startsWith(prefix));
  if (stranger !== undefined) throw new Error(`The server lists ${stranger.key} below ${prefix}`);
  return objects;
}

/** The SDK's responses have headers by lower-case name. */
function measureClock(response: unknown): number | undefined {
  const { headers } = (response ?? {}) as { readonly headers?: { readonly date?: string } };
  const serverMs = Date.parse(headers?.date ?? '');
  return Number.isNaN(serverMs) ? undefined : Date.now() - serverMs;
}
