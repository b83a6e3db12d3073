import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';
import { formatByteSize } from './command.ts';

/** Most files take less, and need no output. */
const DELAY_MS = 1_000;

const LINE_INTERVAL_MS = 10_000;

export interface Progress {
  advance(bytes: number): void;
  /** Removes the bar. Without a terminal, writes a last line if there were earlier ones. */
  stop(): void;
}

/** Shows a bar on a terminal, lines elsewhere, after a second. @param totalBytes omit if unknown, as for a pipe */
export function createProgress(
  stream: Writable,
  label: string,
  totalBytes: number | undefined,
): Progress {
  let doneBytes = 0;
  const isTerminal = 'isTTY' in stream && stream.isTTY === true;
  const bar = new SingleBar({
    stream: stream as NodeJS.WritableStream,
    clearOnComplete: true,
    noTTYOutput: true,
    notTTYSchedule: LINE_INTERVAL_MS,
    // Otherwise cli-progress writes an empty line if nothing has changed.
    forceRedraw: !isTerminal,
    format: ({ barsize = 0 }, { progress, value }) => {
      const done = formatByteSize(value);
      if (totalBytes === undefined) return `${label}: ${done}`;
      const bars = '='.repeat(Math.floor(progress * barsize)).padEnd(barsize, '-');
      const percent = Math.floor(progress * 100);
      return `${label}: ${isTerminal ? `[${bars}] ` : ''}${percent} %, ${done} of ${formatByteSize(totalBytes)}`;
    },
  });
  const timer = setTimeout(() => bar.start(totalBytes ?? 0, doneBytes), DELAY_MS);
  return {
    advance: (bytes) => {
      doneBytes += bytes;
      bar.update(doneBytes);
    },
    stop: () => {
      clearTimeout(timer);
      bar.stop();
    },
  };
}
