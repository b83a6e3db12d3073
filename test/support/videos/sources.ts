/** A file in memory that is read by ranges, and the ranges that were read. */
export function memorySource(file: Uint8Array) {
  const reads: [start: number, end: number][] = [];
  return {
    sizeBytes: file.length,
    reads,
    async read(start: number, end: number): Promise<Uint8Array> {
      reads.push([start, end]);
      return file.subarray(start, end);
    },
  };
}
