import type { EventEmitter } from 'node:events';

/** SIGHUP: the terminal has closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A signal that stops a process. */
export type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * Time within which a repeated signal is the same one, in milliseconds: `timeout` of coreutils, and init systems, signal
 * the process and then its group, and npx forwards what the terminal has sent to all. A person's second ^C takes longer.
 */
const SAME_SIGNAL_MS = 150;

/**
 * Replaces the default action of SIGINT, SIGTERM and SIGHUP. The package `close-with-grace` exits at every second signal, those
 * of npx too, and waits for a log that hangs.
 *
 * @param target the process
 * @param onFirst stops what runs
 * @param onSecond ends the process at once
 * @returns a function that restores the default action
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
