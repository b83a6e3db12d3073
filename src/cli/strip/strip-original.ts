import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import type { MetadataOutcome } from '../../contract/metadata.ts';
import { withDeadline } from '../../pipeline/abort.ts';
import type { OriginalWriter } from '../../pipeline/originals/original-writer.ts';
import { type Source, StateMismatch } from '../../pipeline/ports.ts';
import { cleanChunks, openCleaner, PREFIX_BYTES } from '../../pipeline/uploads/metadata-removal.ts';

/** Others may replace the original at the same time. */
const MAX_ATTEMPTS = 3;

export interface StripParts {
  readonly origin: Source;
  readonly writer: OriginalWriter;
  readonly firstByteTimeoutMs: number;
  readonly isDryRun: boolean;
  /** Called after each attempt to write, even a failed one: its response may have been lost. */
  readonly purge: (key: string) => Promise<void>;
  /** Whether a SHA-256 is blocked: the block would not apply to the cleaned bytes. Omit without a block list. */
  readonly isBlocked?: ((sha256: string) => Promise<boolean>) | undefined;
}

/**
 * Removes the metadata from a stored original. Reads the original once to find metadata, and again only if it must be
 * written.
 *
 * @returns `removed` also for a dry run that found metadata; `blocked` for an original left as it is
 * @throws MediaError `UNKNOWN_MEDIA`, `UNSUPPORTED_MEDIA_TYPE`; `PRECONDITION_FAILED` if others keep replacing the
 *   original; errors of the storage and of `purge`; `signal.reason`
 */
export async function stripOriginal(
  key: string,
  parts: StripParts,
  signal: AbortSignal,
): Promise<MetadataOutcome | 'blocked'> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await stripOnce(key, parts, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (attempt === MAX_ATTEMPTS || !isReplaced(error)) throw error;
    }
  }
}

async function stripOnce(key: string, parts: StripParts, signal: AbortSignal) {
  const bodies: Readable[] = [];
  try {
    return await stripOpened(key, parts, bodies, signal);
  } finally {
    // A writer that fails early leaves its body unread.
    for (const body of bodies) body.destroy();
  }
}

/** @param bodies receives the opened bodies */
async function stripOpened(
  key: string,
  parts: StripParts,
  bodies: Readable[],
  signal: AbortSignal,
) {
  const { origin, writer, firstByteTimeoutMs, isDryRun, isBlocked } = parts;
  const late = (): MediaError => new MediaError('ORIGIN_TIMEOUT');
  const open = async (ifMatch?: string) => {
    const opened = await withDeadline(firstByteTimeoutMs, signal, late, (within) =>
      origin.open(key, { signal: AbortSignal.any([signal, within]), ifMatch }),
    );
    const { body, etag } = opened as Extract<typeof opened, { readonly etag: unknown }>;
    if (body === undefined) throw new Error('The storage returned an unexpected 304.');
    if (body instanceof Uint8Array) return { etag, chunks: [body] };
    bodies.push(body);
    return { etag, chunks: body };
  };
  const found = await open();
  const hash = isBlocked && createHash('sha256');
  const checked = await clean(found.chunks, (chunk) => hash?.update(chunk));
  if (checked === undefined) return 'not-supported';
  let sizeBytes = 0;
  for await (const { length } of checked.chunks) {
    signal.throwIfAborted();
    sizeBytes += length;
  }
  if (!checked.cleaner.hasRemoved) return 'none';
  if (isDryRun) return 'removed';
  if (hash !== undefined && (await isBlocked?.(hash.digest('hex'))) === true) return 'blocked';
  const again = await open(found.etag);
  const cleaned = again.etag === found.etag ? await clean(again.chunks) : undefined;
  if (cleaned === undefined) throw new MediaError('PRECONDITION_FAILED');
  try {
    await writer.write(key, cleaned.chunks, { signal, sizeBytes, ifMatch: found.etag });
  } finally {
    await parts.purge(key);
  }
  return 'removed';
}

type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Returns `undefined` for formats without a cleaner. */
async function clean(file: Chunks, watch: (chunk: Uint8Array) => void = () => undefined) {
  const chunks = (async function* () {
    yield* file;
  })();
  const first: Uint8Array[] = [];
  let prefix = Buffer.alloc(0);
  while (prefix.length < PREFIX_BYTES) {
    const { done, value } = await chunks.next();
    if (done === true) break;
    first.push(value);
    prefix = Buffer.concat([prefix, value]);
  }
  const cleaner = await openCleaner({ peek: async () => prefix });
  if (cleaner === undefined) return undefined;
  const watched = (async function* () {
    for (const chunk of first) {
      watch(chunk);
      yield chunk;
    }
    for await (const chunk of chunks) {
      watch(chunk);
      yield chunk;
    }
  })();
  return { cleaner, chunks: cleanChunks(watched, cleaner) };
}

function isReplaced(error: unknown): boolean {
  if (!(error instanceof MediaError)) return false;
  if (error.cause instanceof StateMismatch) return true;
  return error.code === 'PRECONDITION_FAILED' || error.code === 'OVERLOADED';
}
