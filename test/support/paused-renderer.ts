import type { Lane } from '../../src/pipeline/ports.ts';
import type { LaneRenderer } from './render-slots.ts';
import { samples } from './test-app.ts';

/** A paused render, which a test recognizes by its width. */
export interface PausedJob {
  readonly lane: Lane;
  readonly edge: number;
  readonly finish: () => void;
  readonly fail: (error: Error) => void;
}

/** Pauses the jobs of one lane or both until the test finishes them. */
export class PausedRenderer implements LaneRenderer {
  held: Lane | 'both' | undefined;
  /** All paused jobs, in the order in which they started. */
  readonly jobs: PausedJob[] = [];
  readonly #running = new Set<PausedJob>();
  readonly #onEnd: () => void;

  /** @param onEnd called when a job ends */
  constructor(held?: Lane | 'both', onEnd = (): void => undefined) {
    this.held = held;
    this.#onEnd = onEnd;
  }

  get running(): readonly PausedJob[] {
    return [...this.#running];
  }

  render: LaneRenderer['render'] = (_original, { size }, { lane, signal }) =>
    new Promise((resolve, reject) => {
      const finish = (): void => {
        this.#running.delete(job);
        this.#onEnd();
        resolve(samples.webp);
      };
      const fail = (error: unknown): void => {
        this.#running.delete(job);
        reject(error);
      };
      const job = { lane, edge: size.widthPx, finish, fail };
      signal.addEventListener('abort', () => fail(signal.reason));
      if (this.held !== lane && this.held !== 'both') return finish();
      this.jobs.push(job);
      this.#running.add(job);
    });

  /** Finishes all paused jobs, and pauses no more. */
  release(): void {
    this.held = undefined;
    for (const { finish } of this.running) finish();
  }
}
