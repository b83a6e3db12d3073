import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Config } from '../config/config.ts';
import { errorRegistry, MediaError } from '../contract/errors.ts';
import type { CacheOutcome } from '../pipeline/request-trace.ts';
import { errorCacheControl, formatFailure } from './failure.ts';
import {
  ChunkedBuffer,
  COMMON_HEADERS,
  canSendRawHead,
  formatCacheStatus,
  formatServerTiming,
  PIECE_BYTES,
  type PreparedBody,
  type SelectedResponse,
  selectResponse,
  sendRawHead,
  type TagField,
} from './head.ts';
import {
  finishRequest,
  idOf,
  type Observers,
  type RequestState,
  reportError,
  startRequest,
  startSending,
} from './request-state.ts';

interface ListenerContext extends Observers {
  readonly http: Config['http'];
  readonly keepAliveTimeoutMs: number;
  readonly tagFieldOf: ((originKeys: readonly string[]) => TagField) | undefined;
}

const MISS: CacheOutcome = { kind: 'miss' };

/** One request and its response. Prepared fields bypass Fastify, and plain hits also `writeHead`, to save CPU. */
export class Exchange {
  readonly request: IncomingMessage;
  readonly state: RequestState;
  readonly commonHeaders: Readonly<Record<string, string>>;
  readonly #response: ServerResponse;
  readonly #context: ListenerContext;
  #clientGone: AbortController | undefined;
  #isClientGone = false;
  /** Whether the response hides cache outcome and stage times of a failed fetch, which would reveal internal networks. */
  #isConcealed = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    context: ListenerContext,
    commonHeaders: Readonly<Record<string, string>> = COMMON_HEADERS,
  ) {
    this.request = request;
    this.commonHeaders = commonHeaders;
    this.state = startRequest(request, context);
    this.#response = response;
    this.#context = context;
    response.on('close', () => {
      if (!response.writableFinished) {
        this.#isClientGone = true;
        this.#clientGone?.abort();
      }
      finishRequest(this.state, response, context);
    });
  }

  get tagField(): TagField | undefined {
    const { originKeys } = this.state;
    return originKeys.length === 0 ? undefined : this.#context.tagFieldOf?.(originKeys);
  }

  get target(): string {
    return this.request.url ?? '';
  }

  get addresses(): readonly string[] {
    return this.#context.listAddresses(this.request);
  }

  /** Signal of the client's disconnect. */
  get signal(): AbortSignal {
    // Created lazily: hits do not need it.
    this.#clientGone ??= new AbortController();
    if (this.#isClientGone) this.#clientGone.abort();
    return this.#clientGone.signal;
  }

  /** Sets the cache outcome for the response and the log; it stays if an error or a disconnect follows. */
  setOutcome(outcome: CacheOutcome): void {
    this.state.outcome = outcome;
  }

  /** Sends a 100 (Continue) if the client expects one and supports it: not in HTTP/1.0 (RFC 9110 §10.1.1). */
  sendContinue(): void {
    const { headers, httpVersion } = this.request;
    if (headers.expect !== undefined && httpVersion !== '1.0') this.#response.writeContinue();
  }

  endConnection(): void {
    this.#response.shouldKeepAlive = false;
  }

  /** Responds with a body in memory. @param watch wraps large bodies, so that a block can end the transfer */
  sendBytes(
    { head, rawHead, bytes }: PreparedBody,
    cacheControl: string,
    outcome: CacheOutcome,
    watch?: (body: Readable) => Readable,
  ): void {
    this.setOutcome(outcome);
    const response = this.#response;
    const selected = selectResponse(this.request, head);
    const { status, first, last } = selected;
    const part = status === 206 ? bytes.subarray(first, (last ?? 0) + 1) : bytes;
    const isLarge = part.length > PIECE_BYTES;
    if (status === 200 && !isLarge && canSendRawHead(this.request, response)) {
      startSending(this.state, bytes, this.#context);
      const fields = this.#fieldsOf([], cacheControl);
      sendRawHead(response, rawHead, fields, this.#context.keepAliveTimeoutMs, bytes);
    } else if (status === 304 || status === 416) {
      this.sendSelected(selected, cacheControl, outcome);
    } else {
      const isWatched = watch !== undefined && isLarge && this.request.method !== 'HEAD';
      const body = isWatched ? watch(new ChunkedBuffer(part)) : part;
      this.sendSelected(selected, cacheControl, outcome, body);
    }
  }

  sendSelected(
    { status, fields }: SelectedResponse,
    cacheControl: string,
    outcome: CacheOutcome,
    body?: Buffer | Readable,
  ): void {
    this.setOutcome(outcome);
    if (status !== 416) this.respond(status, fields, body, cacheControl);
    else this.fail(new MediaError('RANGE_NOT_SATISFIABLE'), { 'content-range': fields[1] ?? '' });
  }

  /**
   * Sends a response, with the fields that describe the request. Sends no body to a HEAD.
   *
   * @param fields alternating names and values of headers
   * @param cacheControl value of `Cache-Control`, if it is not among the fields
   * @throws TypeError if Node rejects a field, before anything is sent
   */
  respond(
    status: number,
    fields: readonly string[],
    body?: Buffer | Readable,
    cacheControl?: string,
  ): void {
    const isLarge = body instanceof Buffer && body.length > PIECE_BYTES;
    const sent = this.request.method === 'HEAD' ? undefined : body;
    const sentBody = sent !== undefined && isLarge ? new ChunkedBuffer(body) : sent;
    startSending(this.state, sentBody, this.#context);
    const head = [...fields, ...this.#fieldsOf(fields, cacheControl)];
    if (sentBody instanceof Readable) {
      this.#stream(status, head, sentBody);
    } else {
      this.#response.writeHead(status, head);
      this.#response.end(sentBody);
    }
  }

  /**
   * Responds with a `MediaError`. Any other error is a bug: the client receives a 500, and the log has the cause.
   *
   * @param headers in addition to those of all errors
   */
  fail(error: unknown, headers: Readonly<Record<string, string>> = {}): void {
    const known =
      error instanceof MediaError ? error : new MediaError('INTERNAL_ERROR', { cause: error });
    if (this.#isClientGone) {
      // Log bugs even if the client has disconnected.
      const isAbort = error instanceof Error && error.name === 'AbortError';
      if (known !== error && !isAbort) reportError(this.state, known, this.#context);
      return;
    }
    this.state.error = known;
    reportError(this.state, known, this.#context);
    const tagField = known.status === 404 ? this.tagField : undefined;
    const { http } = this.#context;
    const { maxRefusalAgeSeconds } = this.state;
    const failure = formatFailure(known, {
      'cache-control': errorCacheControl(known, http.maxAgeSeconds, maxRefusalAgeSeconds),
      ...this.commonHeaders,
      ...headers,
      ...(tagField && Object.fromEntries([tagField])),
    });
    const isOriginFailure = errorRegistry[known.code].fault === 'origin';
    this.#isConcealed = isOriginFailure && this.state.media?.url !== undefined;
    this.respond(failure.status, Object.entries(failure.headers).flat(), failure.body);
  }

  /** Streams a body. Sends the head with the first bytes; if the body fails earlier, the client receives an error. */
  #stream(status: number, head: readonly string[], body: Readable): void {
    const response = this.#response;
    const names = head.filter((_, index) => index % 2 === 0);
    body.once('error', (error) => {
      if (!response.headersSent) {
        for (const name of names) response.removeHeader(name);
        this.fail(error);
        return;
      }
      if (error instanceof MediaError && !this.#isClientGone) {
        this.state.error = error;
        reportError(this.state, error, this.#context);
      }
      response.destroy();
    });
    response.once('close', () => body.destroy());
    response.statusCode = status;
    try {
      for (const [index, name] of names.entries()) {
        response.setHeader(name, head[2 * index + 1] ?? '');
      }
    } catch (error) {
      for (const name of names) response.removeHeader(name);
      body.destroy();
      throw error;
    }
    body.pipe(response);
  }

  /** Returns the fields that describe the request and its caching. @param others fields that the response already has */
  #fieldsOf(others: readonly string[], cacheControl: string | undefined): string[] {
    const outcome = this.#isConcealed ? MISS : this.state.outcome;
    const timings = this.#isConcealed ? [] : this.state.trace.timings;
    const serverTiming = formatServerTiming(timings);
    const fields: string[] = [];
    if (cacheControl !== undefined) fields.push('cache-control', cacheControl);
    if (this.#context.http.hasCdnCacheControl) {
      const index = others.indexOf('cache-control');
      const repeated = cacheControl ?? (index < 0 ? undefined : others[index + 1]);
      if (repeated !== undefined) fields.push('cdn-cache-control', repeated);
    }
    if (outcome !== undefined) fields.push('cache-status', formatCacheStatus(outcome));
    if (serverTiming !== undefined) fields.push('server-timing', serverTiming);
    fields.push('x-request-id', idOf(this.state));
    return fields;
  }
}
