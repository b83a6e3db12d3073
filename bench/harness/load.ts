import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionPool, type Received } from './connection.ts';

/** GETs of a list of paths, each read to its end. */
export type Load = {
  readonly origin: string;
  readonly paths: readonly string[];
} & (
  | {
      /** Open loop: so many a second at even distances, whatever has been received; the list is repeated. */
      readonly kind: 'steady';
      readonly perSecond: number;
      readonly durationMs: number;
    }
  | {
      /**
       * Closed loop: each client asks when it has its response, for the next path of the list. It ends with the
       * list; with `durationMs` after that time, and then the list must be long enough or `isRepeated`.
       */
      readonly kind: 'closed';
      readonly clients: number;
      readonly durationMs?: number;
      readonly isRepeated?: boolean;
    }
);

/** One response, with its times. */
export interface LoadResponse extends Received {
  /** Since 1970. */
  readonly startedMs: number;
  readonly totalMs: number;
}

/** All responses of a load, and what there is to doubt about them. */
export interface LoadResult {
  readonly responses: readonly LoadResponse[];
  readonly seconds: number;
  /** How late each request of an open loop was sent, in milliseconds: the generator's own fault. */
  readonly latenessMs: readonly number[];
}

/** A client that was refused tries again after this, in milliseconds, rather than turn in circles. */
const PAUSE_AFTER_REFUSAL_MS = 100;

/** Milliseconds since 1970, in fractions, comparable between the processes of one machine. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}

/**
 * Drives a load to its end and waits for the last response.
 *
 * @throws Error if a closed loop has come to the end of its list before its time
 */
export async function drive(load: Load): Promise<LoadResult> {
  const beganMs = performance.now();
  const responses: LoadResponse[] = [];
  const latenessMs: number[] = [];
  const connections = new ConnectionPool(load.origin);
  const ask = async (path: string): Promise<LoadResponse> => {
    const startedMs = epochMs();
    const received = await connections.request(path);
    const response = { startedMs, totalMs: epochMs() - startedMs, ...received };
    responses.push(response);
    return response;
  };
  try {
    if (load.kind === 'closed') await driveClosed(load, ask);
    else {
      await driveSteady(load, (path, late) => {
        latenessMs.push(late);
        return ask(path);
      });
    }
  } finally {
    connections.close();
  }
  return { responses, seconds: (performance.now() - beganMs) / 1000, latenessMs };
}

async function driveSteady(
  { paths, perSecond, durationMs }: Load & { kind: 'steady' },
  ask: (path: string, lateMs: number) => Promise<unknown>,
): Promise<void> {
  const pending: Promise<unknown>[] = [];
  const beganMs = performance.now();
  const count = Math.round((perSecond * durationMs) / 1000);
  for (let index = 0; index < count; index += 1) {
    const dueMs = beganMs + (index * 1000) / perSecond;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    pending.push(ask(paths[index % paths.length] ?? '/', Math.max(0, performance.now() - dueMs)));
  }
  await Promise.all(pending);
}

async function driveClosed(
  { paths, clients, durationMs, isRepeated }: Load & { kind: 'closed' },
  ask: (path: string) => Promise<LoadResponse>,
): Promise<void> {
  const endMs = performance.now() + (durationMs ?? Number.POSITIVE_INFINITY);
  let next = 0;
  const askOn = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const path = paths[isRepeated === true ? next % paths.length : next];
      next += 1;
      if (path === undefined) {
        if (durationMs === undefined) return;
        throw new Error(`All ${paths.length} paths are used up.`);
      }
      const { status } = await ask(path);
      if (status === 503) await sleep(PAUSE_AFTER_REFUSAL_MS);
    }
  };
  await Promise.all(Array.from({ length: clients }, askOn));
}
