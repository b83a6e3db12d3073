import type { FastifyInstance, FastifyReply } from 'fastify';
import { MediaError } from '../../contract/errors.ts';
import type { ParseOptions } from '../../contract/media-request.ts';
import { parsePurgeRequest } from '../../contract/purge-request.ts';
import { isTimeout } from '../../pipeline/abort.ts';
import type { CdnPurger } from '../../pipeline/cdn/cdn-purger.ts';
import type { Log } from '../../pipeline/ports.ts';
import type { Purger } from '../../pipeline/results/purger.ts';
import type { Failure } from '../failure.ts';
import { logFieldOf, notFound, sendFailure } from './replies.ts';

const MAX_LISTED_PURGES = 1_000;

/**
 * Adds `POST /purge`; `parsePurgeRequest` parses its body. Logs each purge with the client's address.
 *
 * @param parseOptions for the purged paths, without a check of signatures
 */
export function registerPurge(
  server: FastifyInstance,
  purger: Pick<Purger, 'purge'>,
  parseOptions: ParseOptions,
  log: Log,
): void {
  server.post('/purge', async ({ body, ip: client }, reply) => {
    const request = parsePurgeRequest(body, parseOptions);
    const logged = { ...logFieldOf(body), client };
    const { removed, storeFailure, cdnPurgeId, cdnFailure } = await purger.purge(request, {
      scope: 'everywhere',
    });
    const failure = storeFailure ?? cdnFailure;
    if (failure === undefined) {
      const isQueued = cdnPurgeId !== undefined;
      log.info({ ...logged, removed, ...(isQueued && { id: cdnPurgeId }) }, 'purged');
      return isQueued ? reply.status(202).send({ id: cdnPurgeId }) : { removed };
    }
    if (failure instanceof MediaError) {
      log.warn({ ...logged, code: failure.code }, 'purge rejected');
      return sendFailure(reply, failure);
    }
    const [shown, message] =
      storeFailure === undefined
        ? [journalError, 'purge not stored for the CDN']
        : isTimeout(storeFailure)
          ? [storeTimeout, 'purge incomplete: result store timed out']
          : [storeError, 'purge incomplete: result store failed'];
    log.error({ ...logged, err: failure }, message);
    return sendFailure(reply, shown);
  });
}

/** Adds `GET /purges/{id}` and `GET /purges`: the state of purges at the CDN in front. */
export function registerPurges(server: FastifyInstance, cdn: CdnPurger, log: Log): void {
  const orFailure = async (reply: FastifyReply, read: () => Promise<object | undefined>) => {
    try {
      return (await read()) ?? sendFailure(reply, notFound);
    } catch (error) {
      log.error({ err: error }, 'reading purges for the CDN failed');
      return sendFailure(reply, journalError);
    }
  };
  server.get<{ Params: { readonly id: string } }>('/purges/:id', ({ params }, reply) =>
    orFailure(reply, () => cdn.find(params.id)),
  );
  server.get('/purges', (_request, reply) =>
    orFailure(reply, async () => {
      const purges = await cdn.list();
      return { count: purges.length, purges: purges.slice(0, MAX_LISTED_PURGES) };
    }),
  );
}

const storeTimeout = {
  status: 504,
  code: 'STORE_TIMEOUT',
  message: 'The store timed out. The memory is purged; purge again later.',
} as const satisfies Failure;

const storeError = {
  status: 502,
  code: 'STORE_ERROR',
  message: 'The store failed. The memory is purged; purge again once the store works.',
} as const satisfies Failure;

const journalError = {
  status: 503,
  code: 'JOURNAL_ERROR',
  message:
    'Purges for the CDN cannot be read or written. The CDN does not receive this purge; purge again later.',
} as const satisfies Failure;
