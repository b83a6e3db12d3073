import { setTimeout as wait } from 'node:timers/promises';

/**
 * Stretches of gentle work and its rests, in milliseconds: a third of what it could do. All out a walk
 * takes most of the main thread, for 45 000 files a second; so, a quarter, for 11 000 (100 000 files in
 * 10 000 folders, on a busy machine of two cores).
 */
const WORK_MS = 10;
const REST_MS = 20;

/** The pace of work in the background, which takes a part of one core at most; several pieces may share one. */
export class GentlePace {
  #workSinceMs = performance.now();
  #steppedAtMs = this.#workSinceMs;

  /**
   * Rests, if it is time to; to be called between two short steps.
   *
   * @throws `signal.reason`
   */
  async step(signal: AbortSignal | undefined): Promise<void> {
    const nowMs = performance.now();
    // Nobody has worked meanwhile, or has waited for the disk.
    if (nowMs - this.#steppedAtMs > REST_MS) this.#workSinceMs = nowMs;
    this.#steppedAtMs = nowMs;
    if (nowMs - this.#workSinceMs < WORK_MS) return;
    // Not what keeps a process alive that has nothing else to do.
    await wait(REST_MS, undefined, { ref: false });
    signal?.throwIfAborted();
    this.#workSinceMs = performance.now();
    this.#steppedAtMs = this.#workSinceMs;
  }
}
