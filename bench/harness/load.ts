import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionPool, type Received } from './connection.ts';

/** GETs of a list of paths, each read to its end. */
export type Load = {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly durationMs: number;
} & (
  | {
      /** Open loop: requests at even distances, whatever the responses; the list repeats. */
      readonly perSecond: number;
    }
  | {
      /** Closed loop: each client requests the next path once it has its response. */
      readonly clients: number;
      /** Whether the list repeats; otherwise it must be long enough. */
      readonly isRepeated?: boolean;
    }
);

/** Response with its times. */
export interface LoadResponse extends Received {
  /** Since 1970. */
  readonly startedMs: number;
  readonly totalMs: number;
}

export interface LoadResult {
  readonly responses: readonly LoadResponse[];
  readonly seconds: number;
  /** Delay of each request of an open loop, which is the generator's own fault. */
  readonly latenessMs: readonly number[];
}

/** Pause of a client after a 503, so that it does not spin. */
const PAUSE_AFTER_REFUSAL_MS = 100;

/** Returns milliseconds since 1970, with fractions, comparable between the processes of one machine. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}

/**
 * Drives a load to its end and waits for the last response.
 *
 * @throws Error if a closed loop reaches the end of its list too early
 */
export async function drive(load: Load): Promise<LoadResult> {
  const { origin, paths, durationMs } = load;
  const beganMs = performance.now();
  const responses: LoadResponse[] = [];
  const latenessMs: number[] = [];
  const connections = new ConnectionPool(origin);
  const ask = async (path: string): Promise<number> => {
    const startedMs = epochMs();
    const received = await connections.request(path);
    responses.push({ startedMs, totalMs: epochMs() - startedMs, ...received });
    return received.status;
  };
  let next = 0;
  const askOn = async (isRepeated: boolean): Promise<void> => {
    while (performance.now() < beganMs + durationMs) {
      const path = paths[isRepeated ? next % paths.length : next];
      if (path === undefined) throw new Error(`All ${paths.length} paths are used up.`);
      next += 1;
      if ((await ask(path)) === 503) await sleep(PAUSE_AFTER_REFUSAL_MS);
    }
  };
  const pending: Promise<unknown>[] = [];
  try {
    if ('clients' in load) {
      for (let client = 0; client < load.clients; client += 1) {
        pending.push(askOn(load.isRepeated ?? false));
      }
    } else {
      const count = Math.round((load.perSecond * durationMs) / 1000);
      for (let index = 0; index < count; index += 1) {
        const dueMs = beganMs + (index * 1000) / load.perSecond;
        await sleep(Math.max(0, dueMs - performance.now()));
        latenessMs.push(Math.max(0, performance.now() - dueMs));
        pending.push(ask(paths[index % paths.length] ?? '/'));
      }
    }
    await Promise.all(pending);
  } finally {
    connections.close();
  }
  return { responses, seconds: (performance.now() - beganMs) / 1000, latenessMs };
}
