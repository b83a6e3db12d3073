import {
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import type { ListedOriginal, OriginListing } from '../../pipeline/ports.ts';
import {
  createS3Client,
  describeS3Failure,
  isPossibleKey,
  readS3Failure,
  type S3BucketOptions,
} from './s3-client.ts';
import { readListedObjects, readNextPage } from './s3-listed-objects.ts';

/** Tells what is in the bucket of an `S3Origin`, page by page; it takes the right to list (`s3:ListBucket`). */
export class S3Listing implements OriginListing {
  readonly #client: S3Client;
  readonly #options: S3BucketOptions;

  /** @param client see `createS3Listing` */
  constructor(client: S3Client, options: S3BucketOptions) {
    this.#client = client;
    this.#options = options;
  }

  async list(
    prefix: string,
    visit: (original: ListedOriginal) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { bucket, prefix: root } = this.#options;
    try {
      let ContinuationToken: string | undefined;
      do {
        signal.throwIfAborted();
        // Encoded, because XML 1.0 cannot say every character of a file name.
        const command = new ListObjectsV2Command({
          Bucket: bucket,
          Prefix: root + prefix,
          EncodingType: 'url',
          ContinuationToken,
        });
        const page: ListObjectsV2CommandOutput = await this.#client.send(command, {
          abortSignal: signal,
        });
        for (const { key, sizeBytes } of readListedObjects(page, root + prefix)) {
          if (!isPossibleKey(key)) continue;
          if (!visit({ key: key.slice(root.length), sizeBytes })) return;
        }
        ContinuationToken = readNextPage(page);
      } while (ContinuationToken !== undefined);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof MediaError) throw error;
      const cause = await describeS3Failure(this.#client, readS3Failure(error));
      throw new MediaError('ORIGIN_ERROR', { cause });
    }
  }
}

/** Connects to a bucket; see `createS3Client`. */
export function createS3Listing(options: S3BucketOptions): S3Listing {
  return new S3Listing(createS3Client(options), options);
}
