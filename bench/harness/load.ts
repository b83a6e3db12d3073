import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, type Received } from './connection.ts';

/** GETs of a list of paths, each read to its end. */
export type Load = {
  readonly origin: string;
  readonly paths: readonly string[];
  /** A header line of every request: `Name: value`. */
  readonly header?: string | undefined;
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
  readonly mostInFlight: number;
}

/** A client that was refused tries again after this, in milliseconds, rather than turn in circles. */
const PAUSE_AFTER_REFUSAL_MS = 100;

/**
 * Connections that have rested so long are not used again, in milliseconds: Node closes them after 5 seconds, and
 * may do so just as a request is sent (RFC 9112 §9.5).
 */
const KEEP_IDLE_MS = 4_000;

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
  const run = new LoadRun(load);
  const beganMs = performance.now();
  try {
    await run.drive();
    const seconds = (performance.now() - beganMs) / 1000;
    return { responses: run.responses, seconds, ...run.doubts };
  } finally {
    run.close();
  }
}

class LoadRun {
  readonly responses: LoadResponse[] = [];
  readonly doubts = { latenessMs: [] as number[], mostInFlight: 0 };
  readonly #load: Load;
  readonly #server: { readonly host: string; readonly port: number };
  /** The one that was used last at the end. */
  readonly #idle: Connection[] = [];
  #inFlight = 0;

  constructor(load: Load) {
    this.#load = load;
    const { hostname, port } = new URL(load.origin);
    this.#server = { host: hostname, port: Number(port) };
  }

  async drive(): Promise<void> {
    if (this.#load.kind === 'steady') await this.#steady(this.#load);
    else await this.#closed(this.#load);
  }

  close(): void {
    for (const connection of this.#idle) connection.close();
  }

  async #steady({ paths, perSecond, durationMs }: Load & { kind: 'steady' }): Promise<void> {
    const pending = new Set<Promise<LoadResponse>>();
    const beganMs = performance.now();
    const count = Math.round((perSecond * durationMs) / 1000);
    for (let index = 0; index < count; index += 1) {
      const dueMs = beganMs + (index * 1000) / perSecond;
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      this.doubts.latenessMs.push(Math.max(0, performance.now() - dueMs));
      const response = this.#ask(paths[index % paths.length] ?? '/');
      pending.add(response);
      void response.then(() => pending.delete(response));
    }
    await Promise.all(pending);
  }

  async #closed({ paths, clients, durationMs, isRepeated }: Load & { kind: 'closed' }) {
    const endMs = performance.now() + (durationMs ?? Number.POSITIVE_INFINITY);
    let next = 0;
    const ask = async (): Promise<void> => {
      while (performance.now() < endMs) {
        const path = paths[isRepeated === true ? next % paths.length : next];
        next += 1;
        if (path === undefined) {
          if (durationMs === undefined) return;
          throw new Error(`All ${paths.length} paths are used up.`);
        }
        const { status } = await this.#ask(path);
        if (status === 503) await sleep(PAUSE_AFTER_REFUSAL_MS);
      }
    };
    await Promise.all(Array.from({ length: clients }, ask));
  }

  async #ask(path: string): Promise<LoadResponse> {
    this.#inFlight += 1;
    this.doubts.mostInFlight = Math.max(this.doubts.mostInFlight, this.#inFlight);
    const { header } = this.#load;
    const { host, port } = this.#server;
    const head = [`GET ${path} HTTP/1.1`, `Host: ${host}:${port}`, ...(header ? [header] : [])];
    const connection = this.#takeIdle() ?? new Connection(this.#server);
    const startedMs = epochMs();
    const received = await connection.request(`${head.join('\r\n')}\r\n\r\n`);
    const response = { startedMs, totalMs: epochMs() - startedMs, ...received };
    this.#inFlight -= 1;
    if (connection.isOpen) this.#idle.push(connection);
    this.responses.push(response);
    return response;
  }

  #takeIdle(): Connection | undefined {
    const connection = this.#idle.pop();
    if (connection === undefined) return undefined;
    if (connection.isOpen && performance.now() - connection.idleSinceMs < KEEP_IDLE_MS) {
      return connection;
    }
    // Those below have rested even longer.
    for (const older of [connection, ...this.#idle.splice(0)]) older.close();
    return undefined;
  }
}
