import type { ClientResponse } from '../support/http/http-client.ts';

/** A request of a load whose response was not as it should be. */
export interface Failure {
  readonly path: string;
  /** Since the load began, in milliseconds. */
  readonly startedMs: number;
  readonly endedMs: number;
  /** Status, or what was reported. */
  readonly reason: string;
}

/** What has come of a load. */
export interface LoadReport {
  /** ETags of the responses, by path. */
  readonly etags: ReadonlyMap<string, string>;
  readonly failures: readonly Failure[];
}

/**
 * Has clients ask for one path after another, each path once, until it is stopped.
 *
 * @returns the stop, which waits for the last responses
 */
export function startLoad(
  clients: number,
  paths: Iterator<string>,
  ask: (path: string) => Promise<ClientResponse>,
): { readonly elapsedMs: () => number; readonly stop: () => Promise<LoadReport> } {
  const etags = new Map<string, string>();
  const failures: Failure[] = [];
  const beganMs = performance.now();
  const elapsedMs = (): number => performance.now() - beganMs;
  let isStopped = false;

  const askOne = async (path: string): Promise<void> => {
    const startedMs = elapsedMs();
    const fail = (reason: string): void =>
      void failures.push({ path, startedMs, endedMs: elapsedMs(), reason });
    try {
      const { status, header, body } = await ask(path);
      if (status !== 200) fail(`status ${status}`);
      else if (Number(header('content-length')) !== body.length) fail('a body of another length');
      else etags.set(path, header('etag'));
    } catch (error) {
      fail(String(error));
    }
  };
  const run = async (): Promise<void> => {
    for (let next = paths.next(); !isStopped && !next.done; next = paths.next()) {
      await askOne(next.value);
    }
    if (!isStopped) throw new Error('There are not enough paths for this load.');
  };
  const running = Array.from({ length: clients }, run);
  return {
    elapsedMs,
    stop: async () => {
      isStopped = true;
      await Promise.all(running);
      return { etags, failures };
    },
  };
}
