import type { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { sourceFormats } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import type { ByteRange, Opened } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import type { OriginalLocation } from './backend.ts';
import { SNIFF_BYTES, sniffContentType } from './content-sniff.ts';
import { forwardBody, readPrefix } from './forward-body.ts';
import { discard, isStream, lengthOf, openContent } from './open-body.ts';
import type { OriginalServices } from './originals.ts';
import type { Beginning } from './records.ts';

export interface RequestedBytes {
  /**
   * Whether the complete body is likely to be sent. If not (HEAD, a range, a condition), only the first bytes are read,
   * which avoids an aborted transfer.
   */
  readonly isComplete: boolean;
  readonly isRange: boolean;
  /** The requested range, if it begins at 0. */
  readonly beginning?: ByteRange | undefined;
}

export interface PassthroughRequest extends RequestedBytes, OriginalLocation {
  readonly request: MediaRequest;
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
}

export interface FoundBeginning {
  readonly beginning: Beginning;
  /** Body of a beginning that was just read, and the bytes read from it. */
  readonly opened?: Opened & { readonly prefixBytes: Uint8Array };
}

export class OriginalReplaced extends Error {
  override readonly name = 'OriginalReplaced';
  override readonly message = 'The original was replaced while it was opened.';
}

/** Types of images that are forwarded from other sites: those that Darkroom decodes (contract §8). */
const PICTURES: ReadonlySet<string> = new Set(
  [...Object.keys(sourceFormats), 'heif', 'heic-sequence', 'heif-sequence'].map(
    (name) => `image/${name}`,
  ),
);

/** Opens an original, or a range from 0, and reads the first bytes. */
export async function openBeginning(
  passthrough: PassthroughRequest,
  range: ByteRange | undefined,
): Promise<FoundBeginning> {
  const { backend, sourceKey, signal } = passthrough;
  const opened = await openContent(backend, sourceKey, { signal, range });
  return readBeginning(passthrough, opened, range);
}

/** Reads the first bytes of an opened body. @param range requested range of the body */
export async function readBeginning(
  passthrough: PassthroughRequest,
  opened: Opened,
  range?: ByteRange,
): Promise<FoundBeginning> {
  const { backend, signal } = passthrough;
  const { part, sizeBytes, etag, lastModified, freshForMs } = opened;
  try {
    if ((sizeBytes ?? 0) > backend.maxForwardedBytes) {
      const cause = new Error(`${sizeBytes} bytes, at most ${backend.maxForwardedBytes}`);
      throw new MediaError('MEDIA_TOO_LARGE', { cause });
    }
    const prefixBytes = await readPrefix(backend, opened, SNIFF_BYTES, signal);
    const prefix = new Uint8Array(prefixBytes.subarray(0, SNIFF_BYTES));
    const contentType = await sniffContentType(prefix);
    if (backend.isExternal) checkType(contentType);
    // Without a tag, ranges may belong to different states.
    if (part !== undefined && etag === undefined) {
      discard(backend, opened);
      return await openBeginning(passthrough, undefined);
    }
    const hasRanges = part !== undefined || range === undefined || !backend.isExternal;
    const state = { sizeBytes, etag, lastModified, freshForMs };
    return {
      beginning: { prefix, contentType, hasRanges, ...state },
      opened: { ...opened, prefixBytes },
    };
  } catch (error) {
    if (isStream(opened.body)) opened.body.destroy();
    throw error;
  }
}

/** Returns the requested range from 0, extended to the bytes that determine the type. */
export function rangeOfBeginning(requested: ByteRange | undefined): ByteRange {
  const least = SNIFF_BYTES - 1;
  if (requested === undefined) return { first: 0, last: least };
  const { last } = requested;
  return { first: 0, last: last === undefined ? undefined : Math.max(last, least) };
}

/** Opens a range of the same state as a beginning. @throws OriginalReplaced; MediaError of the source */
export async function openRange(
  { records }: OriginalServices,
  { backend, originKey, sourceKey, signal }: PassthroughRequest,
  range: ByteRange,
  { etag: tag, sizeBytes }: Beginning,
): Promise<Readable> {
  const opened = await openContent(backend, sourceKey, { signal, range, ifRange: tag });
  const { body, part, etag } = opened;
  const isSame = etag === tag && opened.sizeBytes === sizeBytes;
  if (part === undefined || !isSame || !isStream(body)) {
    // The original was replaced, or the site does not support ranges.
    if (isStream(body)) body.destroy();
    records.forgetBeginning(originKey);
    throw new OriginalReplaced();
  }
  // A failure before the first byte can still determine the status.
  const prefix = await readPrefix(backend, opened, 1, signal);
  return forwardBody(backend, prefix, body, lengthOf(opened));
}

/** @throws MediaError `UNSUPPORTED_MEDIA_TYPE` for types that are not forwarded from other sites */
export function checkType(contentType: string): void {
  if (/^(?:video|audio)\//.test(contentType) || PICTURES.has(contentType)) return;
  throw new MediaError('UNSUPPORTED_MEDIA_TYPE', {
    cause: new Error(`The type is ${contentType}.`),
  });
}

/** Runs a read, and remembers failures of another site. */
export async function rememberingFailures<Result>(
  { records }: OriginalServices,
  { backend, originKey }: OriginalLocation,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    // Failures of the storage are not remembered: the attachment may be uploaded next.
    if (backend.isExternal) records.noteError(originKey, error);
    throw error;
  }
}
