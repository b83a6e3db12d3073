import { unlessAborted } from '../../pipeline/abort.ts';
import { StoreStalled } from '../../pipeline/ports.ts';

/**
 * Watches over removals from a disk: one that makes no step for some time is given up. Its system call cannot be
 * given up, and keeps one of the few threads that all file access shares; so no other removal begins before it has
 * ended.
 */
export class StallWatch {
  readonly #stallTimeoutMs: number;
  #hanging = 0;

  /** @param stallTimeoutMs longest time from one step to the next, in milliseconds */
  constructor(stallTimeoutMs: number) {
    this.#stallTimeoutMs = stallTimeoutMs;
  }

  /**
   * @param removal has to stop with the signal, at the latest when its disk responds again
   * @throws StoreStalled; what the removal throws
   */
  async run<Result>(
    removal: (signal: AbortSignal, onStep: () => void) => Promise<Result>,
  ): Promise<Result> {
    if (this.#hanging > 0) throw new StoreStalled('The disk still does not answer.');
    const stalled = new AbortController();
    const timer = setTimeout(() => {
      stalled.abort(new StoreStalled(`The disk has not answered for ${this.#stallTimeoutMs} ms.`));
    }, this.#stallTimeoutMs);
    const running = removal(stalled.signal, () => timer.refresh());
    try {
      return await unlessAborted(running, stalled.signal);
    } catch (error) {
      if (stalled.signal.aborted) {
        this.#hanging += 1;
        const end = (): void => {
          this.#hanging -= 1;
        };
        running.then(end, end);
      }
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
