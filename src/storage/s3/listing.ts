import {
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import type { ListedOriginal, OriginListing } from '../../pipeline/ports.ts';
import { createS3Client, findS3Cause, isPossibleKey, type S3BucketOptions } from './client.ts';

/** Listing of the bucket of an `S3Origin`, page by page; needs the permission to list (`s3:ListBucket`). */
export class S3Listing implements OriginListing {
  readonly #client: S3Client;
  readonly #options: S3BucketOptions;

  constructor(options: S3BucketOptions) {
    this.#client = createS3Client(options);
    this.#options = options;
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
 * Lists the objects whose keys begin with a prefix, page by page, up to 1000 at a time.
 *
 * @param prefix of keys
 * @param send sends a request to the server
 * @throws Error if a key does not begin with the prefix: a server that does not know the parameter lists the whole
 *   bucket; if a page is truncated without a token for the rest; errors of `send`
 */
export async function* listObjects(
  bucket: string,
  prefix: string,
  send: (command: ListObjectsV2Command) => Promise<ListObjectsV2CommandOutput>,
): AsyncGenerator<readonly ListedOriginal[], void> {
  let ContinuationToken: string | undefined;
  do {
    // URL-encoded, because XML 1.0 cannot represent every character of a file name.
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
      throw new Error('The server truncates its list, without a token for the rest.');
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
    // A plus sign itself is encoded; servers that do not encode do not declare the encoding either.
    const key = EncodingType === 'url' ? decodeURIComponent(Key.replaceAll('+', '%20')) : Key;
    return [{ key, sizeBytes: Size }];
  });
  const stranger = objects.find(({ key }) => !key.startsWith(prefix));
  if (stranger !== undefined) throw new Error(`The server lists ${stranger.key} below ${prefix}`);
  return objects;
}
