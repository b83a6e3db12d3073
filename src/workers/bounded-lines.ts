import type { Readable } from 'node:stream';

/** How much is read of what a process writes, and in what pieces. */
export interface LineBounds {
  readonly maxLines: number;
  /** In bytes; what goes beyond counts as another line. */
  readonly maxLineBytes: number;
}

/**
 * Reads a stream line by line, as far as the bounds go, and closes it then: a process that writes on gets an
 * error for it and costs us nothing.
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
