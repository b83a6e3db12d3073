/** A piece of a file that has its own length or checksum: a chunk, a segment, a block or a box. */
export interface Part {
  readonly tag: string;
  /** What it holds; of one with children, what stands before them. */
  readonly data: Buffer;
  readonly children?: readonly Part[];
}

/** Takes files of a format apart, and puts parts together with all lengths and checksums right. */
export interface PartCodec {
  /** @throws RangeError, or any other error, where the file is not well-formed */
  readonly parse: (file: Buffer) => Part[];
  readonly format: (parts: readonly Part[]) => Buffer;
}
