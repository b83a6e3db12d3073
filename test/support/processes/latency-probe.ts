import { Worker } from 'node:worker_threads';

/** One answer to the probe; times in milliseconds, the start by the Unix clock. */
export interface ProbeAnswer {
  readonly status: number;
  readonly cacheStatus: string;
  readonly startedMs: number;
  readonly tookMs: number;
  /** Of which the server's main thread was running. */
  readonly ranMs: number;
}

/** Asks for one URL ten times a second, for as long as it runs, and remembers every answer. */
export class LatencyProbe {
  readonly #thread: Worker;
  readonly answers: ProbeAnswer[] = [];
  /** What kept it from asking on. */
  fault: string | undefined;

  /** @param target `url` to ask for, `pid` of the server */
  constructor(target: { readonly url: string; readonly pid: number }) {
    this.#thread = new Worker(new URL('./probe-thread.mjs', import.meta.url), {
      workerData: { ...target, intervalMs: 100 },
    });
    this.#thread.on('message', (answer: ProbeAnswer | { readonly error: string }) => {
      if ('error' in answer) this.fault = answer.error;
      else this.answers.push(answer);
    });
    this.#thread.on('error', (error) => {
      this.fault = String(error);
    });
  }

  /** The slowest of the answers that were asked for in a stretch of time, or just before it. */
  slowestWithin(fromMs: number, toMs: number): ProbeAnswer | undefined {
    return this.answers
      .filter(({ startedMs, tookMs }) => startedMs <= toMs && startedMs + tookMs >= fromMs)
      .reduce<ProbeAnswer | undefined>(
        (slowest, answer) => ((slowest?.tookMs ?? 0) > answer.tookMs ? slowest : answer),
        undefined,
      );
  }

  async stop(): Promise<void> {
    await this.#thread.terminate();
  }
}
