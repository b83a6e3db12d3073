import { json } from 'node:stream/consumers';
import { type App, type AppParts, createApp } from '../app.ts';
import type { Config } from '../config/config.ts';
import type { ErrorCode, RequestFault } from '../contract/errors.ts';
import { unlessAborted } from '../pipeline/abort.ts';
import { CommandFault } from './command.ts';

/** A single request needs no more than one worker of each lane. */
const ONE_WORKER = { light: 1, heavy: 1 } as const;

/** What the service would respond to one request, without a server. */
interface OfflineResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Runs something with the service as it is configured, but for its listeners, its traces and its number of
 * workers, and ends it again. It keeps no rendering and looks for none: the store is the running service's.
 *
 * @param signal ends the wait for a response
 * @throws CommandFault if the service cannot start; what the work throws; `signal.reason`
 */
export async function withOfflineApp<Result>(
  config: Config,
  parts: AppParts,
  signal: AbortSignal,
  work: (ask: (target: string) => Promise<OfflineResponse>) => Promise<Result>,
): Promise<Result> {
  const app: App = await createApp(
    {
      ...config,
      admin: undefined,
      tracing: undefined,
      resultStore: undefined,
      renderer: { ...config.renderer, workers: ONE_WORKER },
    },
    parts,
  ).catch(cannotStart);
  try {
    await app.started.catch(cannotStart);
    return await work(async (target) => {
      const responding = app.server.inject({
        method: 'GET',
        url: target,
        headers: { host: 'localhost' },
        payloadAsStream: true, // attachments may be larger than the memory
      });
      const response = await unlessAborted(responding, signal);
      return {
        status: response.statusCode,
        contentType: String(response.headers['content-type'] ?? ''),
        body: response.stream(),
      };
    });
  } finally {
    await app.close();
  }
}

function cannotStart(cause: unknown): never {
  throw new CommandFault('the service cannot start; see darkroom check', { cause });
}

/** The body of an error, as the contract has it. */
interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly errors?: readonly RequestFault[];
}

/** An error of the service for a person: status, code and message, then a line for each fault. */
export async function formatErrorResponse({ status, body }: OfflineResponse): Promise<string> {
  const { code, message, errors = [] } = (await json(body)) as ErrorBody;
  const lines = errors.map((fault) => `\n  ${fault.path}: ${fault.message}`);
  return `${status} ${code}: ${message}${lines.join('')}`;
}
