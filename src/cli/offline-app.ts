import { type App, type AppParts, createApp } from '../app.ts';
import type { Config } from '../config/config.ts';
import { unlessAborted } from '../pipeline/abort.ts';
import { CommandFault } from './command.ts';

/** A single request needs no more than one worker of each lane. */
const ONE_WORKER = { light: 1, heavy: 1 } as const;

/** What the service would answer to one request, without a server. */
export interface OfflineAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Runs something with the service as it is configured, but for its listeners, its traces and its number of
 * workers, and ends it again. It keeps no rendering and looks for none: the store is the running service's.
 *
 * @param signal ends the wait for an answer
 * @throws CommandFault if the service cannot start; what the work throws; `signal.reason`
 */
export async function withOfflineApp<Result>(
  config: Config,
  parts: AppParts,
  signal: AbortSignal,
  work: (ask: (target: string) => Promise<OfflineAnswer>) => Promise<Result>,
): Promise<Result> {
  const app: App = await createApp(
    {
      ...config,
      admin: undefined,
      tracing: undefined,
      resultStore: undefined,
      renderer: { ...config.renderer, workers: ONE_WORKER },
      admission: { ...config.admission, slots: ONE_WORKER },
    },
    parts,
  ).catch((cause: unknown) => {
    throw new CommandFault('the service cannot start; see darkroom check', { cause });
  });
  try {
    return await work(async (target) => {
      const answering = app.server.inject({
        method: 'GET',
        url: target,
        headers: { host: 'localhost' },
        payloadAsStream: true, // attachments may be larger than the memory
      });
      const answer = await unlessAborted(answering, signal);
      return {
        status: answer.statusCode,
        contentType: String(answer.headers['content-type'] ?? ''),
        body: answer.stream(),
      };
    });
  } finally {
    await app.close();
  }
}
