import { Worker } from 'node:worker_threads';

/** One response to the probe, and how long it took in milliseconds. */
interface ProbeResponse {
  readonly status: number;
  readonly tookMs: number;
}

/** Asks for one URL ten times a second, for as long as it runs, and remembers every response. */
export class LatencyProbe {
  readonly #thread: Worker;
  readonly responses: ProbeResponse[] = [];
  /** What kept it from asking on. */
  fault: string | undefined;

  constructor(url: string) {
    this.#thread = new Worker(new URL('./probe-thread.mjs', import.meta.url), { workerData: url });
    this.#thread.on('message', (response: ProbeResponse) => this.responses.push(response));
    this.#thread.on('error', (error) => {
      this.fault = String(error);
    });
  }

  /** How long the slowest response took. */
  get slowestMs(): number {
    return Math.max(...this.responses.map(({ tookMs }) => tookMs));
  }

  async stop(): Promise<void> {
    await this.#thread.terminate();
  }
}
