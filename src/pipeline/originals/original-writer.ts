/** What belongs to one write of an original. */
export interface OriginalWriteOptions {
  /** Ends it; nothing is left of it then. */
  readonly signal: AbortSignal;
  /** Hears how many bytes have been written so far. */
  readonly onProgress?: (writtenBytes: number) => void;
}

/** Where an operator puts originals. The service itself reads them, and has no right to more. */
export interface OriginalWriter {
  /**
   * Puts an original at its key, in place of what is there. No reader ever gets a part of it.
   *
   * @param key as read by `parseOriginKey`
   * @param chunks its bytes, in pieces of any size
   * @throws Error if the storage fails, with its words as cause; what `chunks` throws; `signal.reason`
   */
  write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options: OriginalWriteOptions,
  ): Promise<void>;
}
