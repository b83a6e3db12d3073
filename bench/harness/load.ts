import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionPool, type Received } from './connection.ts';

/** GETs of a list of paths, each read to its end. */
interface Paths {
  readonly origin: string;
  readonly paths: readonly string[];
}

/** Open loop: so many a second at even distances, whatever has been received; the list is repeated. */
export interface SteadyLoad extends Paths {
  readonly kind: 'steady';
  readonly perSecond: number;
  readonly durationMs: number;
}

/**
 * Closed loop: each client asks when it has its response, for the next path of the list. The list must be long
 * enough, or `isRepeated`.
 */
export interface ClosedLoad extends Paths {
  readonly kind: 'closed';
  readonly clients: number;
  readonly durationMs: number;
  readonly isRepeated?: boolean;
}

export type Load = SteadyLoad | ClosedLoad;

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
    else await driveSteady(load, ask, latenessMs);
  } finally {
    connections.close();
  }
  return { responses, seconds: (performance.now() - beganMs) / 1000, latenessMs };
}

type Ask = (path: string) => Promise<LoadResponse>;

async function driveSteady(
  { paths, perSecond, durationMs }: SteadyLoad,
  ask: Ask,
  latenessMs: number[],
): Promise<void> {
  const pending: Promise<unknown>[] = [];
  const beganMs = performance.now();
  const count = Math.round((perSecond * durationMs) / 1000);
  for (let index = 0; index < count; index += 1) {
    const dueMs = beganMs + (index * 1000) / perSecond;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    latenessMs.push(Math.max(0, performance.now() - dueMs));
    pending.push(ask(paths[index % paths.length] ?? '/'));
  }
  await Promise.all(pending);
}

async function driveClosed(
  { paths, clients, durationMs, isRepeated = false }: ClosedLoad,
  ask: Ask,
): Promise<void> {
  const endMs = performance.now() + durationMs;
  let next = 0;
  const askOn = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const path = paths[isRepeated ? next % paths.length : next];
      if (path === undefined) throw new Error(`All ${paths.length} paths are used up.`);
      next += 1;
      const { status } = await ask(path);
      if (status === 503) await sleep(PAUSE_AFTER_REFUSAL_MS);
    }
  };
  await Promise.all(Array.from({ length: clients }, askOn));
}
