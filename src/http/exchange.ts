import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { errorRegistry, MediaError } from '../contract/errors.ts';
import type { CacheOutcome } from '../pipeline/request-trace.ts';
import { formatFailure } from './failure.ts';
import {
  COMMON_HEADERS,
  errorCacheControl,
  formatCacheStatus,
  formatServerTiming,
  type MaxAgeSeconds,
  type Part,
  selectPart,
  type TagField,
} from './head.ts';
import {
  ChunkedBuffer,
  canSendText,
  PIECE_BYTES,
  type PreparedBody,
  sendText,
} from './prepared-body.ts';
import {
  finishRequest,
  idOf,
  type Observers,
  type RequestFacts,
  reportError,
  startFacts,
  startSending,
} from './request-facts.ts';

/** Responds to a request, at once or later. */
export type Work = (exchange: Exchange) => Promise<void> | undefined;

/** Options that all exchanges of a listener share. */
export interface ExchangeOptions extends Observers {
  readonly maxAgeSeconds: MaxAgeSeconds;
  readonly keepAliveTimeoutMs: number;
  /** Whether `CDN-Cache-Control` (RFC 9213) repeats `Cache-Control`. */
  readonly hasCdnCacheControl: boolean;
  /** Formats the tags of originals for the CDN in front. Omit to send none. */
  readonly tagFieldOf: ((originKeys: readonly string[]) => TagField) | undefined;
}

const MISS: CacheOutcome = { kind: 'miss' };

/**
 * One request and its response. `respond` sends all responses but plain hits, errors included, and adds the headers on the
 * request: what the cache had, where the time went, the request's id.
 *
 * It writes prepared fields to Node's response directly, which is what makes hits fast.
 */
export class Exchange {
  readonly request: IncomingMessage;
  readonly facts: RequestFacts;
  /** Headers of all responses to this request, errors included. */
  readonly commonHeaders: Readonly<Record<string, string>>;
  readonly #response: ServerResponse;
  readonly #options: ExchangeOptions;
  #gone: AbortController | undefined;
  #isGone = false;
  /**
   * Whether another site may not be fetched from, or has failed: then the response does not show which of both it was,
   * nor how far the fetch went, so that nobody can map a network through us.
   */
  #isConcealed = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    options: ExchangeOptions,
    commonHeaders: Readonly<Record<string, string>> = COMMON_HEADERS,
  ) {
    this.request = request;
    this.commonHeaders = commonHeaders;
    this.facts = startFacts(request, options);
    this.#response = response;
    this.#options = options;
    response.on('close', () => {
      if (!response.writableFinished) {
        this.#isGone = true;
        this.#gone?.abort();
      }
      finishRequest(this.facts, response, options);
    });
  }

  /** Header for the CDN in front, with the tags of the originals that the response depends on. */
  get tagField(): TagField | undefined {
    const { originKeys } = this.facts;
    return originKeys.length === 0 ? undefined : this.#options.tagFieldOf?.(originKeys);
  }

  /** Path and query as they came in the request line. */
  get target(): string {
    return this.request.url ?? '';
  }

  get addresses(): readonly string[] {
    return this.#options.addressesOf(this.request);
  }

  /** Aborts when the client has gone. */
  get signal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.#isGone) this.#gone.abort();
    return this.#gone.signal;
  }

  /** Asks for the body, if its client waits for that; HTTP/1.0 has no 100 (RFC 9110 §10.1.1). */
  sendContinue(): void {
    const { headers, httpVersion } = this.request;
    if (headers.expect !== undefined && httpVersion !== '1.0') this.#response.writeContinue();
  }

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
   * Responds with a body in memory: the whole, a part, or nothing, as the request's preconditions and range say.
   *
   * @param watch gets a large body, whose client may take long, and may destroy it
   */
  sendBytes(
    { head, wholeText, bytes }: PreparedBody,
    cacheControl: string,
    watch?: (body: Readable) => Readable,
  ): void {
    const response = this.#response;
    const { status, fields, first, last } = selectPart(this.request, head);
    const part = status === 206 ? bytes.subarray(first, (last ?? 0) + 1) : bytes;
    if (status === 416) this.#failRange(fields);
    else if (status === 304) this.respond(status, fields, undefined, cacheControl);
    else if (watch && part.length > PIECE_BYTES && this.request.method !== 'HEAD') {
      this.respond(status, fields, watch(new ChunkedBuffer(part)), cacheControl);
    } else if (
      status === 206 ||
      part.length > PIECE_BYTES ||
      !canSendText(this.request, response)
    ) {
      this.respond(status, fields, part, cacheControl);
    } else {
      startSending(this.facts, bytes, this.#options);
      let text = wholeText;
      const others = this.#fieldsOf([], cacheControl);
      for (let index = 0; index < others.length; index += 2) {
        text += `${others[index]}: ${others[index + 1]}\r\n`;
      }
      const seconds = Math.floor(this.#options.keepAliveTimeoutMs / 1000);
      text += `Date: ${new Date().toUTCString()}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n`;
      sendText(response, text, bytes);
    }
  }

  /** Responds with a selected part whose body was opened, if it has one. */
  sendPart({ status, fields }: Part, cacheControl: string, body: Readable | undefined): void {
    if (status === 416) this.#failRange(fields);
    else this.respond(status, fields, body, cacheControl);
  }

  /**
   * Responds.
   *
   * @param fields names and values of headers in turn, as they are sent
   * @param body a HEAD does not send it
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
    const sentBody = sent !== undefined && isLarge ? new ChunkedBuffer(body) : sent;
    startSending(this.facts, sentBody, this.#options);
    const head = [...fields, ...this.#fieldsOf(fields, cacheControl)];
    if (sentBody instanceof Readable) {
      this.#stream(status, head, sentBody);
    } else {
      this.#response.writeHead(status, head);
      this.#response.end(sentBody);
    }
  }

  /**
   * Responds with an error of the registry. Anything that is not a `MediaError` is a bug of ours: the log has its cause,
   * the response is a 500 without a word of it.
   *
   * @param headersOfError headers beside those of all errors
   */
  fail(error: unknown, headersOfError: Readonly<Record<string, string>> = {}): void {
    const known =
      error instanceof MediaError ? error : new MediaError('INTERNAL_ERROR', { cause: error });
    if (this.#isGone) {
      // Nobody waits for a response, but a bug is a bug.
      const isAbort = error instanceof Error && error.name === 'AbortError';
      if (known !== error && !isAbort) reportError(this.facts, known, this.#options);
      return;
    }
    this.#setError(known);
    const tagField = known.status === 404 ? this.tagField : undefined;
    const { maxAgeSeconds } = this.#options;
    const { status, headers, body } = formatFailure(known, {
      'cache-control': errorCacheControl(known, maxAgeSeconds, this.facts.maxRefusalAgeSeconds),
      ...this.commonHeaders,
      ...headersOfError,
      ...(tagField && Object.fromEntries([tagField])),
    });
    const isOrigins = errorRegistry[known.code].fault === 'origin';
    this.#isConcealed = isOrigins && this.facts.media?.url !== undefined;
    this.respond(status, Object.entries(headers).flat(), body);
  }

  #setError(error: MediaError): void {
    this.facts.error = error;
    reportError(this.facts, error, this.#options);
  }

  #failRange([name = '', value = '']: readonly string[]): void {
    this.fail(new MediaError('RANGE_NOT_SATISFIABLE'), { [name]: value });
  }

  /** Sends the head with the first bytes: until then, a body that fails can still become an error. */
  #stream(status: number, head: readonly string[], body: Readable): void {
    const response = this.#response;
    const names = head.filter((_, index) => index % 2 === 0);
    body.once('error', (error) => {
      if (!response.headersSent) {
        for (const name of names) response.removeHeader(name);
        this.fail(error);
        return;
      }
      if (error instanceof MediaError && !this.#isGone) this.#setError(error);
      response.destroy();
    });
    response.once('close', () => body.destroy());
    response.statusCode = status;
    for (const [index, name] of names.entries())
      response.setHeader(name, head[2 * index + 1] ?? '');
    body.pipe(response);
  }

  /**
   * Returns the fields on the request, and on caching.
   *
   * @param others fields of the response, which have `Cache-Control` if `cacheControl` is `undefined`
   */
  #fieldsOf(others: readonly string[], cacheControl: string | undefined): string[] {
    const { trace } = this.facts;
    const outcome = this.#isConcealed ? MISS : this.facts.outcome;
    const serverTiming = this.#isConcealed ? undefined : formatServerTiming(trace.timings);
    const fields: string[] = [];
    if (cacheControl !== undefined) fields.push('cache-control', cacheControl);
    if (this.#options.hasCdnCacheControl) {
      const index = others.indexOf('cache-control');
      const repeated = cacheControl ?? (index < 0 ? undefined : others[index + 1]);
      if (repeated !== undefined) fields.push('cdn-cache-control', repeated);
    }
    if (outcome !== undefined) fields.push('cache-status', formatCacheStatus(outcome));
    if (serverTiming !== undefined) fields.push('server-timing', serverTiming);
    fields.push('x-request-id', idOf(this.facts));
    return fields;
  }
}
