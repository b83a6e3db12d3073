import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, type Received } from './connection.ts';

/* Entry point of a load generator's process. */

/** GETs of a list of paths, each read to its end. */
export type Load = {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly durationMs: number;
} & (
  | {
      /** Open loop: requests at regular intervals, regardless of the responses; the list repeats. */
      readonly perSecond: number;
    }
  | {
      /** Closed loop: each client requests the next path after its response. */
      readonly clients: number;
      /** Whether the list repeats; otherwise it must be long enough. */
      readonly isRepeated?: boolean;
    }
);

/** Response with its times. */
export interface LoadResponse extends Received {
  /** Time since the start of the load. */
  readonly startedMs: number;
  readonly totalMs: number;
}

export interface LoadResult {
  readonly responses: readonly LoadResponse[];
  readonly seconds: number;
  /** Delay between the scheduled and the actual time of each request of an open loop. */
  readonly latenessMs: readonly number[];
}

/** Outcome of a load, sent to the parent process. */
export type LoadReport = LoadResult | { readonly failure: string };

/** Pause of a client after a 503, so that it does not spin. */
const PAUSE_AFTER_503_MS = 100;

/** Drives a load and waits for the last response. Throws if a closed loop reaches the end of its list too early. */
async function drive(load: Load): Promise<LoadResult> {
  const { origin, paths, durationMs } = load;
  const beganMs = performance.now();
  const sinceBeginMs = (): number => performance.now() - beganMs;
  const responses: LoadResponse[] = [];
  const latenessMs: number[] = [];
  /** Idle connections; the last one was used last. */
  const idle: Connection[] = [];
  const request = async (path: string): Promise<number> => {
    const startedMs = sinceBeginMs();
    let connection = idle.pop();
    while (connection?.isOpen === false) connection = idle.pop();
    connection ??= new Connection(new URL(origin));
    const received = await connection.request(path);
    responses.push({ startedMs, totalMs: sinceBeginMs() - startedMs, ...received });
    idle.push(connection);
    return received.status;
  };
  let next = 0;
  const requestUntilEnd = async (isRepeated = false): Promise<void> => {
    while (sinceBeginMs() < durationMs) {
      const path = paths[isRepeated ? next % paths.length : next];
      if (path === undefined) throw new Error(`All ${paths.length} paths are used up.`);
      next += 1;
      if ((await request(path)) === 503) await sleep(PAUSE_AFTER_503_MS);
    }
  };
  const pending: Promise<unknown>[] = [];
  try {
    if ('clients' in load) {
      pending.push(...Array.from({ length: load.clients }, () => requestUntilEnd(load.isRepeated)));
    } else {
      const count = Math.round((load.perSecond * durationMs) / 1000);
      for (let index = 0; index < count; index += 1) {
        const dueMs = (index * 1000) / load.perSecond;
        await sleep(Math.max(0, dueMs - sinceBeginMs()));
        latenessMs.push(Math.max(0, sinceBeginMs() - dueMs));
        pending.push(request(paths[index % paths.length] ?? '/'));
      }
    }
    await Promise.all(pending);
  } finally {
    for (const connection of idle) connection.close();
  }
  return { responses, seconds: sinceBeginMs() / 1000, latenessMs };
}

process.on('message', async (load: Load) => {
  const report: LoadReport = await drive(load).catch((error: unknown) => ({
    failure: String(error),
  }));
  process.send?.(report);
});
process.on('disconnect', () => process.exit());
