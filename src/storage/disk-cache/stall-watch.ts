import { unlessAborted } from '../../pipeline/abort.ts';
import { StoreStalled } from '../../pipeline/ports.ts';

/** Tells each of its steps. */
type Removal<Result> = (signal: AbortSignal, onStep: () => void) => Promise<Result>;

/**
 * Watches over removals from a disk, of which one is under way at a time: one that makes no step for some time is
 * given up. Its system call cannot be given up, and keeps one of the few threads that all file access shares; so
 * until it has ended, others are refused.
 */
export class StallWatch {
  readonly #stallTimeoutMs: number;
  #isHanging = false;
  /** Fulfilled when the last of those that came has ended or is given up. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param stallTimeoutMs longest time from one step to the next, in milliseconds */
  constructor(stallTimeoutMs: number) {
    this.#stallTimeoutMs = stallTimeoutMs;
  }

  /**
   * @param removal has to stop with the signal, at the latest when its disk responds again
   * @throws StoreStalled; what the removal throws
   */
  run<Result>(removal: Removal<Result>): Promise<Result> {
    const turn = this.#last.then(() => this.#watch(removal));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #watch<Result>(removal: Removal<Result>): Promise<Result> {
    if (this.#isHanging) throw new StoreStalled('The disk still does not answer.');
    const stalled = new AbortController();
    const timer = setTimeout(() => {
      stalled.abort(new StoreStalled(`The disk has not answered for ${this.#stallTimeoutMs} ms.`));
    }, this.#stallTimeoutMs);
    const running = removal(stalled.signal, () => timer.refresh());
    try {
      return await unlessAborted(running, stalled.signal);
    } catch (error) {
      if (stalled.signal.aborted) {
        this.#isHanging = true;
        const end = (): void => {
          this.#isHanging = false;
        };
        running.then(end, end);
      }
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
