import type { UploadPartId } from '../../contract/signing/relay-capability.ts';

export interface OriginalWriteOptions {
  /** Ends the write; then nothing of the original is stored. */
  readonly signal: AbortSignal;
  /** Number of bytes, if known: `chunks` yield as many, or throw. */
  readonly sizeBytes?: number | undefined;
  /** Content type to store with the original, if the storage has a place for one. */
  readonly contentType?: string | undefined;
  /** Whether the key must be free; otherwise an existing original is replaced. */
  readonly isNew?: boolean;
  /** Tag of the only state that may be replaced. The new one keeps its content type, user metadata and permissions. */
  readonly ifMatch?: string | undefined;
}

export interface PartWriteOptions extends UploadPartId {
  readonly signal: AbortSignal;
  readonly sizeBytes: number;
}

/** Storage that originals are written to: by an operator, or with a capability of the platform. */
export interface OriginalWriter {
  /**
   * Writes an original at its key. Readers never receive a partial original.
   *
   * @param key as read by `parseOriginKey`
   * @param chunks of any size
   * @returns the storage's own tag of these bytes, without quotes; empty if the storage returns none
   * @throws MediaError `MEDIA_EXISTS` if the key is not free and must be, `PRECONDITION_FAILED` if the original is in
   *   another state than `ifMatch`, `OVERLOADED` if another attempt may succeed; Error if the storage fails, with its
   *   error as cause; errors of `chunks`; `signal.reason`
   */
  write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options: OriginalWriteOptions,
  ): Promise<string>;
  /**
   * Whether an object exists at a key, as far as the storage reports it.
   *
   * @throws Error if the storage fails
   */
  has(key: string, signal: AbortSignal): Promise<boolean>;
  /** Returns the memory that a write of this length occupies until it ends, in bytes. */
  memoryBytesOf(sizeBytes: number | undefined): number;
  /**
   * Writes a part of a multipart upload, which the platform creates and completes; `undefined` if the storage has no
   * multipart uploads.
   *
   * @returns the storage's tag of the part
   * @throws MediaError `UNKNOWN_MEDIA` if the upload does not exist; and as `write`
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
export async function* untilAborted(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    yield chunk;
  }
  signal.throwIfAborted();
}
