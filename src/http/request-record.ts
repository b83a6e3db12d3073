import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { MediaError } from '../contract/errors.ts';
import { type MediaRequest, type RequestTarget, resultKey } from '../contract/media-request.ts';
import type { ResourceName } from '../contract/resources.ts';
import { cacheUseOf } from '../pipeline/cache-outcome.ts';
import type { ResponseMeter, Stage } from '../pipeline/meter.ts';
import type { Clock } from '../pipeline/ports.ts';
import { RequestTrace, type StageSpan } from '../pipeline/request-trace.ts';
import { type RequestLog, roundMs, shortenTarget } from '../telemetry/request-log.ts';
import type { RequestHead, RequestSpan, RequestTracer } from '../telemetry/request-tracer.ts';

/** Who is told of requests. */
export interface RequestWatchers {
  readonly meter: ResponseMeter;
  readonly requests: RequestLog;
  /** `undefined`: requests are not traced. */
  readonly tracer: RequestTracer | undefined;
  readonly clock: Clock;
}

/** nginx's number for a client that has gone before there was an answer. */
const CLIENT_GONE = 499;

/** A body that tells how much of it was taken. */
interface MeteredBody {
  readonly passedBytes: number;
}

/** What becomes of one request, from its head to the end of its answer; told once that has come. */
export class RequestRecord {
  readonly trace: RequestTrace;
  readonly #span: RequestSpan | undefined;
  readonly #watchers: RequestWatchers;
  readonly #request: FastifyRequest;
  readonly #response: ServerResponse;
  readonly #beganMs: number;
  /** Of a stream that is closed, nobody knows it. */
  readonly #client: string;
  #resource: ResourceName | 'none' = 'none';
  #media: MediaRequest | undefined;
  #error: MediaError | undefined;
  #bodyBytes = (): number => 0;
  #sendingSinceMs: number | undefined;
  #sending: StageSpan | undefined;

  constructor(request: FastifyRequest, reply: FastifyReply, watchers: RequestWatchers) {
    this.#request = request;
    this.#response = reply.raw;
    this.#watchers = watchers;
    this.#span = watchers.tracer?.begin(headOf(request));
    this.trace = new RequestTrace(watchers.clock, this.#span);
    this.#beganMs = watchers.clock.nowMs();
    this.#client = request.ip;
    reply.raw.once('close', () => this.#end());
  }

  /** It has turned out what is asked for. */
  noteTarget(target: RequestTarget): void {
    this.#resource = target.kind === 'media' ? target.request.resource : target.kind;
    if (target.kind === 'media') this.#media = target.request;
  }

  /** It is answered with an error. */
  noteError(error: MediaError): void {
    this.#error = error;
  }

  /** The head of the answer is complete, and this its body. */
  noteBody(payload: unknown): void {
    this.#sendingSinceMs = this.#watchers.clock.nowMs();
    // Of what was at hand, a trace shows no rooms.
    if (cacheUseOf(this.trace.outcome) !== 'memory') this.#sending = this.trace.begin('send');
    if (this.#request.method === 'HEAD') return;
    if (isMetered(payload)) this.#bodyBytes = () => payload.passedBytes;
    else if (payload instanceof Buffer) {
      this.#bodyBytes = () => (this.#response.writableFinished ? payload.length : 0);
    }
  }

  #end(): void {
    const { meter, clock, requests } = this.#watchers;
    const { headersSent, statusCode } = this.#response;
    const nowMs = clock.nowMs();
    const status = headersSent ? statusCode : CLIENT_GONE;
    const { id, method } = this.#request;
    const cache = cacheUseOf(this.trace.outcome);
    const resource = this.#resource;
    const bytes = this.#bodyBytes();
    const count = meter.countOf({ resource, status, cache });
    count.answers += 1;
    count.bodyBytes += bytes;
    const stagesMs: Partial<Record<Stage, number>> = {};
    const noteStage = (stage: Stage, durationMs: number): void => {
      meter.noteStage(stage, durationMs);
      stagesMs[stage] = roundMs(durationMs);
    };
    for (const { room, durationMs } of this.trace.timings) noteStage(room, durationMs);
    if (this.#sendingSinceMs !== undefined) noteStage('send', nowMs - this.#sendingSinceMs);
    this.#sending?.note({ bytes });
    this.#sending?.end();
    this.#span?.end({
      resource,
      status: headersSent ? statusCode : undefined,
      code: this.#error?.code,
      cache,
      bytes,
      id,
      media: this.#media,
    });
    const bottleneck = this.#error?.bottleneck;
    if (bottleneck !== undefined) meter.noteRefusal(bottleneck);

    const isPlainHit = cache === 'memory' && this.#error === undefined;
    if (requests.scope === 'none' || (isPlainHit && requests.scope !== 'all')) return;
    const line = {
      id,
      method,
      resource,
      asset: this.#describeAsset(),
      status,
      ...(this.#error && { code: this.#error.code }),
      cache,
      bytes,
      durationMs: roundMs(nowMs - this.#beganMs),
      stagesMs,
      client: this.#client,
      ...(this.#span && { traceId: this.#span.traceId }),
    };
    requests.tell(line, isPlainHit);
  }

  #describeAsset(): string {
    return this.#media === undefined
      ? shortenTarget(this.#request.originalUrl)
      : resultKey(this.#media);
  }
}

function headOf({ method, originalUrl, raw, headers }: FastifyRequest): RequestHead {
  return { method, target: originalUrl, httpVersion: raw.httpVersion, headers };
}

function isMetered(payload: unknown): payload is MeteredBody {
  return typeof payload === 'object' && payload !== null && 'passedBytes' in payload;
}
