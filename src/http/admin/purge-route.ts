import type { FastifyInstance } from 'fastify';
import { MediaError } from '../../contract/errors.ts';
import { parsePurgeOrder } from '../../contract/purge-order.ts';
import { type Log, StoreFailed, StoreStalled } from '../../pipeline/ports.ts';
import type { Purger } from '../../pipeline/results/purger.ts';
import { describeTarget } from '../../telemetry/described-target.ts';

/** Items of an order that are logged; of more there is the number. */
const MAX_LOGGED_ITEMS = 10;

/** Adds `POST /purge`; `parsePurgeOrder` says what its body is. The log has what was asked, and by whom. */
export function registerPurge(server: FastifyInstance, purger: Purger, log: Log): void {
  server.post('/purge', async ({ body, ip: client }) => {
    const order = parsePurgeOrder(body);
    const asked = describeOrder(body);
    try {
      const removed = await purger.purge(order);
      log.info({ asked, client, removed }, 'purged');
      return { removed };
    } catch (error) {
      if (error instanceof MediaError) {
        log.warn({ asked, client, code: error.code }, 'a purge was turned away');
        throw error;
      }
      const details = { asked, client, err: error };
      if (error instanceof StoreStalled) {
        log.error(details, 'a purge was given up: the result store does not answer');
        throw error;
      }
      if (error instanceof StoreFailed) {
        log.error(details, 'a purge was given up: the result store has failed');
        throw error;
      }
      log.error(details, 'a purge has failed');
      throw new MediaError('INTERNAL_ERROR', { cause: error });
    }
  });
}

/** An order in the words of the API, cut to what a line of the log can hold. */
function describeOrder(body: unknown): object {
  const described: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body ?? {})) {
    const items = [value].flat();
    const logged = items.slice(0, MAX_LOGGED_ITEMS).map((item) => describeTarget(String(item)));
    described[name] = Array.isArray(value) ? logged : logged[0];
    if (items.length > logged.length) described.more = items.length - logged.length;
  }
  return described;
}
