import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestContext } from './media/media-handler.ts';
import { RequestRecord, type RequestWatchers } from './request-record.ts';

/** A request's context, and what will be told of it. */
export interface RecordedContext extends RequestContext {
  readonly record: RequestRecord;
}

/** What is known of each request on its way. */
export class RequestContexts {
  readonly #watchers: RequestWatchers;
  readonly #contexts = new WeakMap<FastifyRequest, RecordedContext>();

  constructor(watchers: RequestWatchers) {
    this.#watchers = watchers;
  }

  /** The context of a request that has one already. */
  find(request: FastifyRequest): RecordedContext | undefined {
    return this.#contexts.get(request);
  }

  /** The context of a request, the same each time; with the first, its answer gets the id. */
  of(request: FastifyRequest, reply: FastifyReply): RecordedContext {
    const known = this.#contexts.get(request);
    if (known !== undefined) return known;
    const context = createContext(request, reply, this.#watchers);
    this.#contexts.set(request, context);
    reply.header('x-request-id', request.id);
    return context;
  }
}

function createContext(
  request: FastifyRequest,
  reply: FastifyReply,
  watchers: RequestWatchers,
): RecordedContext {
  const record = new RequestRecord(request, reply, watchers);
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return {
    record,
    trace: record.trace,
    signal: gone.signal,
    noteTarget: (target) => record.noteTarget(target),
  };
}
