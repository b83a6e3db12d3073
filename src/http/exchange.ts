import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorRegistry, MediaError } from '../contract/errors.ts';
import type { CacheOutcome } from '../pipeline/request-trace.ts';
import { formatFailure } from './error-response.ts';
import { type Observers, RequestRecord } from './request-record.ts';
import { BufferPieces, PIECE_BYTES } from './response-body.ts';
import {
  COMMON_HEADERS,
  errorCacheControl,
  formatCacheStatus,
  formatServerTiming,
  type MaxAgeSeconds,
} from './response-headers.ts';

/** Responds to a request, at once or later. */
export type Work = (exchange: Exchange) => Promise<void> | undefined;

/** Options that all exchanges of a listener share. */
export interface ExchangeOptions extends Observers {
  readonly maxAgeSeconds: MaxAgeSeconds;
}

const MISS: CacheOutcome = { kind: 'miss' };

/**
 * One request and its response. All responses are sent by `respond`, hits and errors alike, and get here the
 * headers on the request: its id, what the cache had, where its time went.
 *
 * Heads are written to Node's response directly. To hand over prepared fields as they are is what makes hits
 * fast: Fastify's reply would take them one by one, and run hooks for each response.
 */
export class Exchange {
  readonly request: IncomingMessage;
  /** The same as Fastify has it, which reads what proxies say of where it came from. */
  readonly received: FastifyRequest;
  readonly record: RequestRecord;
  /** Headers of all responses to this request, errors included. */
  commonHeaders: Readonly<Record<string, string>> = COMMON_HEADERS;
  /** Returns how long a refusal may be kept at most, in seconds; `undefined`: as long as any. */
  maxRefusalAgeSeconds: (() => number | undefined) | undefined;
  readonly #response: ServerResponse;
  readonly #maxAgeSeconds: MaxAgeSeconds;
  #gone: AbortController | undefined;
  #isGone = false;
  /**
   * Another site may not be asked, or has failed, and no client is to learn from the response which it was, nor how
   * far it went: so nobody can map a network through us.
   */
  #isConcealed = false;

  /** Takes the response over: Fastify sends nothing any more. */
  constructor(request: FastifyRequest, reply: FastifyReply, options: ExchangeOptions) {
    reply.hijack();
    this.request = request.raw;
    this.received = request;
    this.record = new RequestRecord(request, options);
    this.#response = reply.raw;
    this.#maxAgeSeconds = options.maxAgeSeconds;
    this.#response.on('close', () => {
      if (!this.#response.writableFinished) {
        this.#isGone = true;
        this.#gone?.abort();
      }
      this.record.end(this.#response);
    });
  }

  /** Path and query as they came in the request line. */
  get target(): string {
    return this.request.url ?? '';
  }

  /** Aborts when the client has gone. */
  get signal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.#isGone) this.#gone.abort();
    return this.#gone.signal;
  }

  /** Asks for the body, if its client waits to be asked; one of HTTP/1.0 knows no 100 (RFC 9110 §10.1.1). */
  sendContinue(): void {
    const { headers, httpVersion } = this.request;
    if (headers.expect !== undefined && httpVersion !== '1.0') this.#response.writeContinue();
  }

  /** Lets the connection end with the response. */
  endConnection(): void {
    this.#response.shouldKeepAlive = false;
  }

  /** Does the work on the request; what it throws becomes the response. */
  run(work: Work): void {
    try {
      work(this)?.catch((error: unknown) => this.fail(error));
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * Responds.
   *
   * @param fields names and values of headers in turn, as they are sent; those on the request are added here
   * @param body of a HEAD it is not sent
   * @param cacheControl value of `Cache-Control`, where it is not among the fields
   * @throws TypeError if Node would not write a field; nothing is sent then
   */
  respond(
    status: number,
    fields: readonly string[],
    body?: Buffer | Readable,
    cacheControl?: string,
  ): void {
    const isLarge = body instanceof Buffer && body.length > PIECE_BYTES;
    const sent = this.request.method === 'HEAD' ? undefined : body;
    const sentBody = sent !== undefined && isLarge ? new BufferPieces(body) : sent;
    this.record.noteResponse(sentBody);
    const head = this.#completeHead(fields, cacheControl);
    if (sentBody instanceof Readable) {
      this.#stream(status, head, sentBody);
    } else {
      this.#response.writeHead(status, head);
      this.#response.end(sentBody);
    }
  }

  /**
   * Responds with an error of the registry. Anything that is not a `MediaError` is a bug of ours: it is logged
   * with its cause and shown as 500 without a word of it.
   *
   * @param headersOfError beside those of all errors
   */
  fail(error: unknown, headersOfError: Readonly<Record<string, string>> = {}): void {
    const known =
      error instanceof MediaError ? error : new MediaError('INTERNAL_ERROR', { cause: error });
    if (this.#isGone) {
      // There is no one to respond to, but a bug is a bug.
      if (known !== error && !isAbort(error)) this.record.report(known);
      return;
    }
    this.record.noteError(known);
    const { status, headers, body } = formatFailure(known, {
      'cache-control': errorCacheControl(
        known.status,
        this.#maxAgeSeconds,
        this.maxRefusalAgeSeconds,
      ),
      ...this.commonHeaders,
      ...headersOfError,
    });
    const isOrigins = errorRegistry[known.code].fault === 'origin';
    this.#isConcealed = isOrigins && this.record.isExternal;
    this.respond(status, Object.entries(headers).flat(), body);
  }

  /** The head goes out with the first bytes: until then, a body that fails can still become an error. */
  #stream(status: number, head: readonly string[], body: Readable): void {
    const response = this.#response;
    const names = head.filter((_, index) => index % 2 === 0);
    body.once('error', (error) => {
      if (!response.headersSent) {
        for (const name of names) response.removeHeader(name);
        this.fail(error);
        return;
      }
      if (error instanceof MediaError && !this.#isGone) this.record.noteError(error);
      response.destroy();
    });
    response.once('close', () => body.destroy());
    response.statusCode = status;
    for (const [index, name] of names.entries())
      response.setHeader(name, head[2 * index + 1] ?? '');
    body.pipe(response);
  }

  /** Adds the fields on the request. */
  #completeHead(fields: readonly string[], cacheControl: string | undefined): string[] {
    const { trace } = this.record;
    const outcome = this.#isConcealed ? MISS : trace.outcome;
    const head = fields.slice();
    if (cacheControl !== undefined) head.push('cache-control', cacheControl);
    if (outcome !== undefined) head.push('cache-status', formatCacheStatus(outcome));
    const serverTiming = this.#isConcealed ? undefined : formatServerTiming(trace.timings);
    if (serverTiming !== undefined) head.push('server-timing', serverTiming);
    if (this.record.isIdWanted) head.push('x-request-id', this.record.id);
    return head;
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
