import { MediaError } from '../../contract/errors.ts';
import type { ListedOriginal, OriginListing } from '../../pipeline/ports.ts';
import { ListObjectsV2Command, type ListObjectsV2CommandOutput } from '../aws-sdk.ts';
import { createS3Client, findS3Cause, isPossibleKey, type S3Bucket } from './client.ts';

/** Requires the permission `s3:ListBucket`. */
export function createS3Listing(location: S3Bucket): OriginListing {
  const client = createS3Client(location);
  const { bucket, prefix: root } = location;
  return {
    list: async (prefix, visit, signal) => {
      const send = (command: ListObjectsV2Command) => client.send(command, { abortSignal: signal });
      try {
        signal.throwIfAborted();
        for await (const { key, sizeBytes } of listObjects(bucket, root + prefix, send)) {
          signal.throwIfAborted();
          if (!isPossibleKey(key)) continue;
          if (!(await visit({ key: key.slice(root.length), sizeBytes }))) return;
        }
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof MediaError) throw error;
        throw new MediaError('ORIGIN_ERROR', { cause: await findS3Cause(client, error) });
      }
    },
  };
}

/**
 * @throws Error if a key does not begin with the prefix, since some servers ignore it and list the entire bucket; if a
 *   page is truncated without a token for the next one; errors of `send`
 *
 */
export async function* listObjects(
  bucket: string,
  prefix: string,
  send: (command: ListObjectsV2Command) => Promise<ListObjectsV2CommandOutput>,
): AsyncGenerator<ListedOriginal, void> {
  let token: string | undefined;
  do {
    const page = await send(
      new ListObjectsV2Command({
        Bucket: bucket,
        Prefix: prefix,
        EncodingType: 'url', // XML 1.0 cannot represent every character of a file name
        ContinuationToken: token,
      }),
    );
    for (const { Key = '', Size = 0 } of page.Contents ?? []) {
      // A literal plus sign is encoded; servers that do not encode omit EncodingType.
      const isEncoded = page.EncodingType === 'url';
      const key = isEncoded ? decodeURIComponent(Key.replaceAll('+', '%20')) : Key;
      if (!key.startsWith(prefix)) throw new Error(`The server lists ${key} for ${prefix}.`);
      yield { key, sizeBytes: Size };
    }
    token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    if (page.IsTruncated === true && !token) {
      throw new Error('The server has truncated a listing without a continuation token.');
    }
  } while (token !== undefined);
}
