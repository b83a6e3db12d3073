import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs } from './epoch.ts';
import { get, HttpClient } from './exchange.ts';

/** A simple load: GETs of a list of paths, one after another, each read to its end. */
export type Load = {
  readonly origin: string;
  readonly paths: readonly string[];
} & (
  | {
      /** Open loop: so many a second at even distances, whatever has been answered; the list is repeated. */
      readonly kind: 'steady';
      readonly perSecond: number;
      readonly durationMs: number;
    }
  | {
      /** Closed loop: each of the clients asks when it has been answered; the list must be long enough. */
      readonly kind: 'closed';
      readonly clients: number;
      readonly durationMs: number;
    }
  | {
      /** All at once, each path by a client of its own. */
      readonly kind: 'crowd';
    }
  | {
      /** So many clients go through the list, in its order, to its end. */
      readonly kind: 'list';
      readonly clients: number;
    }
);

/** One answer, as far as it is measured. */
export interface Answer {
  /** Since 1970. */
  readonly startedMs: number;
  readonly totalMs: number;
  /** 0 where no whole answer came. */
  readonly status: number;
  readonly isHit: boolean;
  readonly retryAfterSeconds: number | undefined;
}

/** All answers of a load, and what there is to doubt about them. */
export interface LoadResult {
  readonly answers: readonly Answer[];
  /** How late each request of an open loop was sent, in milliseconds: the generator's own fault. */
  readonly latenessMs: readonly number[];
  readonly mostInFlight: number;
}

/** A client that was refused tries again after this, in milliseconds, rather than turn in circles. */
const PAUSE_AFTER_REFUSAL_MS = 100;

/**
 * Drives a load to its end and waits for the last answer.
 *
 * @param signal ends it early
 * @throws Error if a closed loop has come to the end of its list
 */
export async function drive(load: Load, signal: AbortSignal): Promise<LoadResult> {
  const client = new HttpClient(load.origin);
  const run = new LoadRun(client);
  try {
    const latenessMs = await run.drive(load, signal);
    return { answers: run.answers, mostInFlight: run.mostInFlight, latenessMs };
  } finally {
    client.close();
  }
}

class LoadRun {
  readonly answers: Answer[] = [];
  mostInFlight = 0;
  #inFlight = 0;
  readonly #client: HttpClient;

  constructor(client: HttpClient) {
    this.#client = client;
  }

  /** @returns lateness of each request of an open loop */
  async drive(load: Load, signal: AbortSignal): Promise<number[]> {
    switch (load.kind) {
      case 'steady':
        return this.#steady(load, signal);
      case 'closed':
        await this.#closed(load, signal);
        return [];
      case 'crowd':
        await Promise.all(load.paths.map((path) => this.#ask(path)));
        return [];
      case 'list':
        await this.#list(load, signal);
        return [];
    }
  }

  async #steady(
    { paths, perSecond, durationMs }: Load & { readonly kind: 'steady' },
    signal: AbortSignal,
  ): Promise<number[]> {
    const latenessMs: number[] = [];
    const pending = new Set<Promise<Answer>>();
    const beganMs = performance.now();
    const count = Math.round((perSecond * durationMs) / 1000);
    for (let index = 0; index < count && !signal.aborted; index += 1) {
      const dueMs = beganMs + (index * 1000) / perSecond;
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => undefined);
      latenessMs.push(Math.max(0, performance.now() - dueMs));
      const answer = this.#ask(paths[index % paths.length] ?? '/');
      pending.add(answer);
      void answer.then(() => pending.delete(answer));
    }
    await Promise.all(pending);
    return latenessMs;
  }

  async #closed(
    { paths, clients, durationMs }: Load & { readonly kind: 'closed' },
    signal: AbortSignal,
  ): Promise<void> {
    const endMs = performance.now() + durationMs;
    let next = 0;
    const loop = async (): Promise<void> => {
      while (performance.now() < endMs && !signal.aborted) {
        const path = paths[next];
        if (path === undefined) throw new Error(`All ${paths.length} paths are used up.`);
        next += 1;
        const { status } = await this.#ask(path);
        if (status === 503) await sleep(PAUSE_AFTER_REFUSAL_MS);
      }
    };
    await Promise.all(Array.from({ length: clients }, loop));
  }

  async #list(
    { paths, clients }: Load & { readonly kind: 'list' },
    signal: AbortSignal,
  ): Promise<void> {
    let next = 0;
    const loop = async (): Promise<void> => {
      for (let path = paths[next]; path !== undefined && !signal.aborted; path = paths[next]) {
        next += 1;
        await this.#ask(path);
      }
    };
    await Promise.all(Array.from({ length: clients }, loop));
  }

  async #ask(path: string): Promise<Answer> {
    this.#inFlight += 1;
    this.mostInFlight = Math.max(this.mostInFlight, this.#inFlight);
    const { startedMs, totalMs, status, headers, ending } = await this.#client.ask(get(path));
    this.#inFlight -= 1;
    const retryAfter = headers['retry-after'];
    const answer: Answer = {
      startedMs,
      totalMs,
      status: ending === 'complete' ? (status ?? 0) : 0,
      isHit: String(headers['cache-status']).includes('hit'),
      retryAfterSeconds: retryAfter === undefined ? undefined : Number(retryAfter),
    };
    this.answers.push(answer);
    return answer;
  }
}

/** Those of the answers that were complete within a span of time. */
export function completedWithin(
  answers: readonly Answer[],
  fromMs: number,
  toMs = epochMs(),
): readonly Answer[] {
  return answers.filter(({ startedMs, totalMs }) => {
    const doneMs = startedMs + totalMs;
    return doneMs >= fromMs && doneMs < toMs;
  });
}
