import type { ListObjectsV2CommandOutput } from '@aws-sdk/client-s3';

/** An object as a page of a list tells of it. */
export interface ListedObject {
  readonly key: string;
  readonly sizeBytes: number;
}

/**
 * The objects of a page, their keys decoded.
 *
 * @param prefix what was asked for
 * @throws Error if a key does not begin with it: a server that does not know the parameter lists the
 *   whole bucket
 */
export function readListedObjects(
  { Contents = [], EncodingType }: ListObjectsV2CommandOutput,
  prefix: string,
): ListedObject[] {
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

/**
 * What the next page of a list is asked for with; `undefined` after the last one.
 *
 * @throws Error if there is more, and no way to it: what was listed is not all, whoever takes it for that
 */
export function readNextPage({
  IsTruncated,
  NextContinuationToken,
}: ListObjectsV2CommandOutput): string | undefined {
  if (IsTruncated !== true) return undefined;
  if (NextContinuationToken) return NextContinuationToken;
  throw new Error('The server lists a part, and tells no way to the rest.');
}
