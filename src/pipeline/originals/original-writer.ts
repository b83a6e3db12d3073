import type { UploadPartId } from '../../contract/signing/relay-capability.ts';

/** Options of one write of an original. */
export interface OriginalWriteOptions {
  /** Ends it; nothing is left of it then. */
  readonly signal: AbortSignal;
  /** Number of bytes, where it is known: `chunks` give as many, or throw. */
  readonly sizeBytes?: number | undefined;
  /** To be stored beside it, where the storage has a place for that. */
  readonly contentType?: string | undefined;
  /** Whether there must be nothing at the key yet. */
  readonly isNew?: boolean;
}

/** Options of one write of a part. */
export interface PartWriteOptions extends UploadPartId {
  readonly signal: AbortSignal;
  readonly sizeBytes: number;
}

/** Where originals are put, by an operator or by those whom the platform permits it. */
export interface OriginalWriter {
  /**
   * Puts an original at its key, in place of what is there. No reader ever gets a part of it.
   *
   * @param key as read by `parseOriginKey`
   * @param chunks its bytes, in pieces of any size
   * @returns the storage's own tag of these bytes, without quotes; the empty text where it tells none
   * @throws MediaError `MEDIA_EXISTS` where it is to be new and is not; Error if the storage fails, with its words as
   *   cause; what `chunks` throws; `signal.reason`
   */
  write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options: OriginalWriteOptions,
  ): Promise<string>;
  /**
   * Whether something is at a key, as far as the storage tells us.
   *
   * @throws Error if the storage fails
   */
  has(key: string, signal: AbortSignal): Promise<boolean>;
  /** Memory that a write holds from its beginning to its end, in bytes, by the length of what is written. */
  heldBytesOf(sizeBytes: number | undefined): number;
  /**
   * Puts a part of what somebody else has begun, and will complete; `undefined` where there is no such thing.
   *
   * @returns the storage's tag of the part
   * @throws MediaError `UNKNOWN_MEDIA` where nothing of that name is under way; and as `write`
   */
  readonly writePart:
    | ((
        key: string,
        chunks: AsyncIterable<Uint8Array>,
        options: PartWriteOptions,
      ) => Promise<string>)
    | undefined;
}

/** Passes chunks on until the signal aborts. */
export async function* untilStopped(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    yield chunk;
  }
  signal.throwIfAborted();
}
