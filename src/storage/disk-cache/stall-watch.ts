import { unlessAborted } from '../../pipeline/abort.ts';
import { StoreStalled } from '../../pipeline/ports.ts';

/** A removal that reports each of its steps. */
type Removal<Result> = (signal: AbortSignal, onStep: () => void) => Promise<Result>;

/**
 * Watch over removals from a disk, which run one at a time: a removal without a step for some time is abandoned. Its
 * system call cannot be cancelled, and occupies one of the few threads that all file access shares; so further removals
 * are rejected until it has ended.
 */
export class StallWatch {
  readonly #stallTimeoutMs: number;
  #isHanging = false;
  /** Fulfilled when the latest removal has ended or was abandoned. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param stallTimeoutMs longest time between two steps, in milliseconds */
  constructor(stallTimeoutMs: number) {
    this.#stallTimeoutMs = stallTimeoutMs;
  }

  /**
   * @param removal must stop with the signal, at the latest when its disk responds again
   * @throws StoreStalled; errors of the removal
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
