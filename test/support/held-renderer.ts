import type { Lane } from '../../src/pipeline/ports.ts';
import type { LaneRenderer } from './render-slots.ts';
import { samples } from './test-app.ts';

/** Holds the jobs of a lane, or of both, until the test ends them, with all that was asked for. */
export class HeldRenderer implements LaneRenderer {
  held: Lane | 'both' | undefined;
  readonly jobs: {
    readonly lane: Lane;
    readonly signal: AbortSignal;
    readonly finish: () => void;
  }[] = [];
  readonly #onEnd: () => void;

  /** @param onEnd called when a job comes to its end */
  constructor(held?: Lane | 'both', onEnd = (): void => undefined) {
    this.held = held;
    this.#onEnd = onEnd;
  }

  render: LaneRenderer['render'] = (_original, _job, { lane, signal }) =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
      const finish = (): void => {
        this.#onEnd();
        resolve(samples.webp);
      };
      if (this.held === lane || this.held === 'both') this.jobs.push({ lane, signal, finish });
      else finish();
    });

  /** Ends all that it holds, and every later one at once. */
  release(): void {
    this.held = undefined;
    for (const { finish } of this.jobs.splice(0)) finish();
  }
}
