import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';
import { formatByteSize } from './command.ts';

/** Time without output, in milliseconds: most files take less. */
const DELAY_MS = 1_000;

/** Time between lines without a terminal, in milliseconds. */
const LINE_INTERVAL_MS = 10_000;

export interface Progress {
  /** Adds bytes that are done. */
  advance(bytes: number): void;
  /** Removes the bar. Without a terminal, writes a last line if there were earlier ones. */
  stop(): void;
}

/**
 * Shows the progress of work that takes longer than a second: a bar on a terminal, lines elsewhere.
 *
 * @param totalBytes omit if unknown, as for a pipe
 */
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
