import { MediaError } from '../../contract/errors.ts';
import {
  createMetadataCleaner,
  type MetadataCleaner,
  MetadataRemovalError,
} from '../../formats/metadata-removal/cleaner.ts';
import { refuse, type UploadBody } from './upload-body.ts';

/** Number of first bytes that determine the cleaner. */
export const PREFIX_BYTES = 4 * 1024;

/** Returns the cleaner of an upload; `undefined` for a format that is stored as sent. @throws as `cleanChunks` */
export async function openCleaner(
  body: Pick<UploadBody, 'peek'>,
): Promise<MetadataCleaner | undefined> {
  const prefix = await body.peek(({ length }) => length >= PREFIX_BYTES);
  return orRefuse(() => createMetadataCleaner(prefix));
}

/**
 * Removes metadata from chunks. The last chunk follows after the cleaner has accepted the complete file: a storage that
 * knows the length stores a file when all bytes have arrived, regardless of later errors.
 *
 * @throws MediaError `UNSUPPORTED_MEDIA_TYPE` if the file cannot be cleaned as a stream; errors of `chunks`
 */
export async function* cleanChunks(
  chunks: AsyncIterable<Uint8Array>,
  cleaner: MetadataCleaner,
): AsyncGenerator<Uint8Array> {
  let pending: Uint8Array | undefined;
  let missingBytes = 0;
  for await (const chunk of chunks) {
    missingBytes += chunk.length;
    for (const cleaned of orRefuse(() => cleaner.write(chunk))) {
      if (cleaned.length === 0) continue;
      missingBytes -= cleaned.length;
      if (pending !== undefined) yield pending;
      pending = cleaned;
    }
  }
  const last = orRefuse(() => cleaner.end());
  missingBytes -= last.reduce((bytes, { length }) => bytes + length, 0);
  if (missingBytes !== 0) {
    const cause = new Error(`The cleaner lost ${missingBytes} bytes.`);
    throw new MediaError('INTERNAL_ERROR', { cause });
  }
  if (pending !== undefined) yield pending;
  yield* last;
}

/** Whether an upload was rejected because its metadata could not be removed. */
export function isRefusal(error: unknown): boolean {
  return error instanceof MediaError && error.cause instanceof MetadataRemovalError;
}

/** @throws MediaError `UNSUPPORTED_MEDIA_TYPE` with the reason */
function orRefuse<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof MetadataRemovalError)) throw cause;
    refuse(`The metadata cannot be removed. ${cause.message}`, cause);
  }
}
