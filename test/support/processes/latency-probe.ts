import { Worker } from 'node:worker_threads';

/** One response to the probe; times in milliseconds, the start by the Unix clock. */
export interface ProbeResponse {
  readonly status: number;
  readonly startedMs: number;
  readonly tookMs: number;
  /** Of which the server's main thread was running. */
  readonly ranMs: number;
}

/** Asks for one URL ten times a second, for as long as it runs, and remembers every response. */
export class LatencyProbe {
  readonly #thread: Worker;
  readonly responses: ProbeResponse[] = [];
  /** What kept it from asking on. */
  fault: string | undefined;

  /** @param target `url` to ask for, `pid` of the server */
  constructor(target: { readonly url: string; readonly pid: number }) {
    this.#thread = new Worker(new URL('./probe-thread.mjs', import.meta.url), {
      workerData: { ...target, intervalMs: 100 },
    });
    this.#thread.on('message', (response: ProbeResponse | { readonly error: string }) => {
      if ('error' in response) this.fault = response.error;
      else this.responses.push(response);
    });
    this.#thread.on('error', (error) => {
      this.fault = String(error);
    });
  }

  /** The slowest of the responses that were asked for in a stretch of time, or just before it. */
  slowestWithin(fromMs: number, toMs: number): ProbeResponse | undefined {
    return this.responses
      .filter(({ startedMs, tookMs }) => startedMs <= toMs && startedMs + tookMs >= fromMs)
      .reduce<ProbeResponse | undefined>(
        (slowest, response) => ((slowest?.tookMs ?? 0) > response.tookMs ? slowest : response),
        undefined,
      );
  }

  async stop(): Promise<void> {
    await this.#thread.terminate();
  }
}
