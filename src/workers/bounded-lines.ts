import type { Readable } from 'node:stream';

/** Bounds of what is read from a process's output. */
export interface LineBounds {
  readonly maxLines: number;
  /** Longest line in bytes; the rest counts as another line. */
  readonly maxLineBytes: number;
}

/**
 * Reads a stream line by line within the bounds, and then closes it: a process that continues to write gets an error
 * and costs us nothing.
 */
export function readLines(
  stream: Readable,
  { maxLines, maxLineBytes }: LineBounds,
  onLine: (line: string) => void,
): void {
  let rest = Buffer.alloc(0);
  let lines = 0;
  const pass = (line: Buffer): void => {
    const text = line.toString().trim();
    if (text === '' || lines === maxLines) return;
    lines += 1;
    onLine(text);
    if (lines === maxLines) stream.destroy();
  };
  stream.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (lines < maxLines) {
      const end = rest.subarray(0, maxLineBytes).indexOf('\n');
      if (end < 0 && rest.length < maxLineBytes) return;
      const cut = end < 0 ? maxLineBytes : end + 1;
      pass(rest.subarray(0, cut));
      rest = rest.subarray(cut);
    }
  });
  stream.on('end', () => pass(rest));
  stream.on('error', () => undefined);
}
