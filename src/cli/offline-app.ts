import { randomUUID } from 'node:crypto';
import { json } from 'node:stream/consumers';
import { type App, type AppParts, createApp } from '../app.ts';
import type { Config } from '../config/config.ts';
import type { ErrorCode, RequestFault } from '../contract/errors.ts';
import { unlessAborted } from '../pipeline/abort.ts';
import { CommandError } from './command.ts';

/** A single request needs only one worker in each lane. */
const ONE_WORKER = { light: 1, heavy: 1 } as const;

interface OfflineResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

type Send = (target: string) => Promise<OfflineResponse>;

/**
 * Runs work with the configured service, without listeners and traces, and then closes it. It does not use stored
 * renderings: the store belongs to the running service.
 * @param signal ends the wait for a response
 * @throws CommandError if the service cannot start; errors of the work; `signal.reason`
 */
export async function withOfflineApp<Result>(
  config: Config,
  parts: AppParts,
  signal: AbortSignal,
  work: (send: Send, sendAdmin: Send, app: App) => Promise<Result>,
): Promise<Result> {
  const token = randomUUID();
  const app: App = await createApp(
    {
      ...config,
      admin: { token, listen: { host: '127.0.0.1', port: 0 } },
      cdn: undefined,
      tracing: undefined,
      resultStore: undefined,
      renderer: { ...config.renderer, workers: ONE_WORKER },
    },
    parts,
  ).catch(cannotStart);
  try {
    await app.started.catch(cannotStart);
    const sendTo =
      (server: App['admin'], headers: Readonly<Record<string, string>>): Send =>
      async (target) => {
        if (server === undefined) throw new Error('The service has no such listener.');
        const responding = server.inject({
          method: 'GET',
          url: target,
          headers: { host: 'localhost', ...headers },
          payloadAsStream: true, // attachments may be larger than the memory
        });
        const response = await unlessAborted(responding, signal);
        return {
          status: response.statusCode,
          contentType: String(response.headers['content-type'] ?? ''),
          body: response.stream(),
        };
      };
    const authorization = `Bearer ${token}`;
    return await work(sendTo(app.server, {}), sendTo(app.admin, { authorization }), app);
  } finally {
    await app.close();
  }
}

function cannotStart(cause: unknown): never {
  throw new CommandError('the service cannot start; see darkroom check', { cause });
}

interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly errors?: readonly RequestFault[];
}

/** Formats status, code and message, then a line for each fault. */
export async function formatErrorResponse({ status, body }: OfflineResponse): Promise<string> {
  const { code, message, errors = [] } = (await json(body)) as ErrorBody;
  const lines = errors.map((fault) => `\n  ${fault.path}: ${fault.message}`);
  return `${status} ${code}: ${message}${lines.join('')}`;
}
