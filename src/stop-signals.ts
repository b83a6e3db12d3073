import type { EventEmitter } from 'node:events';

/** SIGHUP: the terminal was closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * Time within which repeated signals count as one, in milliseconds. coreutils' `timeout` and init systems signal the
 * process and then its group, and npx forwards signals of the terminal. A person's second ^C takes longer.
 */
const SAME_SIGNAL_MS = 150;

/**
 * Replaces the default action of SIGINT, SIGTERM and SIGHUP; returns a function that restores it. The package
 * `close-with-grace` exits at every second signal, including those of npx, and waits for a log that hangs.
 */
export function handleStopSignals(
  target: EventEmitter,
  onFirst: (signal: StopSignal) => void,
  onSecond: (signal: StopSignal) => void,
): () => void {
  let firstAtMs: number | undefined;
  const handle = (signal: StopSignal): void => {
    const nowMs = performance.now();
    if (firstAtMs === undefined) {
      firstAtMs = nowMs;
      onFirst(signal);
    } else if (nowMs - firstAtMs >= SAME_SIGNAL_MS) {
      onSecond(signal);
    }
  };
  for (const signal of STOP_SIGNALS) target.on(signal, handle);
  return () => {
    for (const signal of STOP_SIGNALS) target.off(signal, handle);
  };
}
