import type { EventEmitter } from 'node:events';

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** A signal that stops a process. */
export type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * A signal that comes again within this time is the same one, in milliseconds: `timeout` of coreutils, and init
 * systems, send it to the process and then to its group, and npx passes on what a terminal has sent to all already.
 * Somebody's second ^C takes longer.
 */
const SAME_SIGNAL_MS = 150;

/**
 * From now on, SIGINT and SIGTERM do what is said here.
 *
 * @param target the process
 * @param onFirst stops what runs
 * @param onSecond ends it at once: somebody does not want to wait
 * @returns gives the signals their usual effect again
 */
export function handleStopSignals(
  target: EventEmitter,
  onFirst: (signal: StopSignal) => void,
  onSecond: (signal: StopSignal) => void,
): () => void {
  let firstAtMs: number | undefined;
  const take = (signal: StopSignal): void => {
    const nowMs = performance.now();
    if (firstAtMs === undefined) {
      firstAtMs = nowMs;
      onFirst(signal);
    } else if (nowMs - firstAtMs >= SAME_SIGNAL_MS) {
      onSecond(signal);
    }
  };
  for (const signal of STOP_SIGNALS) target.on(signal, take);
  return () => {
    for (const signal of STOP_SIGNALS) target.off(signal, take);
  };
}
