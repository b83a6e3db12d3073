import type { UploadPartId } from '../../contract/signing/relay-capability.ts';

export interface OriginalWriteOptions {
  /** Aborts the write; nothing is then stored. */
  readonly signal: AbortSignal;
  /** Number of bytes, if known; `chunks` yield as many, or throw. */
  readonly sizeBytes?: number | undefined;
  /** Content type to store, if the storage supports it. */
  readonly contentType?: string | undefined;
  /** Whether the key must be unused; otherwise an existing original is replaced. */
  readonly isNew?: boolean;
  /** Tag of the only state that may be replaced. The new state keeps its content type, user metadata and permissions. */
  readonly ifMatch?: string | undefined;
}

export interface PartWriteOptions extends UploadPartId {
  readonly signal: AbortSignal;
  readonly sizeBytes: number;
}

export interface OriginalWriter {
  /**
   * Writes an original; readers never receive a partial one.
   *
   * @param key as read by `parseOriginKey`
   * @returns the storage's tag of these bytes, unquoted; empty without one
   * @throws MediaError `MEDIA_EXISTS` for a used key with `isNew`, `PRECONDITION_FAILED` for another state than
   *   `ifMatch`, `OVERLOADED` if another attempt may succeed; Error of the storage, with a cause; errors of `chunks`;
   *   `signal.reason`
   */
  write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options: OriginalWriteOptions,
  ): Promise<string>;
  /** Whether an object exists, according to the storage. @throws Error of the storage */
  has(key: string, signal: AbortSignal): Promise<boolean>;
  /** Returns the memory of a write of this length, in bytes. */
  memoryBytesOf(sizeBytes: number | undefined): number;
  /**
   * Writes a part of a multipart upload, which the platform creates and completes. Omit if unsupported.
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
