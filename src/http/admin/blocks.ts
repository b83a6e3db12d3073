import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parseBlockOrder, parseBlockPage } from '../../contract/block-order.ts';
import type { TargetReading } from '../../contract/media-request.ts';
import { type BlockList, ListUnavailable } from '../../pipeline/blocks/block-list.ts';
import type { Log } from '../../pipeline/ports.ts';
import type { Failure } from '../failure.ts';
import { describeOrder, sendFailure } from './replies.ts';

/** Adds the list of blocks; `parseBlockOrder` documents its bodies. The log has what was asked, without digests. */
export function registerBlocks(
  server: FastifyInstance,
  blocks: BlockList,
  { reading, log }: { readonly reading: TargetReading; readonly log: Log },
): void {
  const change =
    (verb: 'block' | 'release') =>
    async ({ body, ip: client }: FastifyRequest, reply: FastifyReply) => {
      const order = parseBlockOrder(body, reading.resources);
      try {
        const generation = await blocks.change(verb, order);
        const { sha256, ...named } = body as { readonly sha256?: readonly unknown[] };
        const asked = describeOrder({ ...named, ...(sha256 && { sha256: sha256.length }) });
        log.info({ verb, asked, client, generation }, 'the list of blocks has changed');
        return { generation };
      } catch (error) {
        if (!(error instanceof ListUnavailable)) throw error;
        return sendFailure(reply, listUnavailable);
      }
    };
  server.post('/blocks', change('block'));
  server.delete('/blocks', change('release'));
  server.get('/blocks', async ({ query }, reply) => {
    const page = parseBlockPage(query);
    try {
      return await blocks.readPage(page);
    } catch (error) {
      if (!(error instanceof ListUnavailable)) throw error;
      return sendFailure(reply, listUnavailable);
    }
  });
}

const listUnavailable = {
  status: 503,
  code: 'BLOCKLIST_UNAVAILABLE',
  message: 'The list of blocks cannot be read or written. The last one holds.',
} as const satisfies Failure;
