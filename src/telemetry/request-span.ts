import type { IncomingMessage } from 'node:http';
import { type ErrorCode, errorRegistry, MediaError } from '../contract/errors.ts';
import { type MediaRequest, splitTarget } from '../contract/media-request.ts';
import { resourceRows } from '../contract/resources.ts';
import { RELAY_PREFIX } from '../contract/signing/relay-capability.ts';
import type { ResponseClass } from '../pipeline/meter.ts';
import type {
  CacheUse,
  StageDetails,
  StageName,
  TracedRequest,
} from '../pipeline/request-trace.ts';
import { SiteFailure } from '../pipeline/site-failure.ts';
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_REQUEST_METHOD_ORIGINAL,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_NETWORK_PROTOCOL_VERSION,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from './opentelemetry.ts';
import { describeTarget } from './redaction.ts';

export type RequestHead = Pick<IncomingMessage, 'method' | 'url' | 'httpVersion' | 'headers'>;

interface TracedResponse {
  readonly resource: ResponseClass['resource'];
  /** `undefined` if the client disconnected before the response. */
  readonly status: number | undefined;
  readonly code: ErrorCode | undefined;
  readonly cache: CacheUse;
  readonly bytes: number;
  readonly id: string | undefined;
  readonly media: MediaRequest | undefined;
}

/** Other methods are `_OTHER` (HTTP semantic conventions), so that span names have few values. */
const KNOWN_METHODS = new Set('CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE'.split(' '));

const MAX_TEXT_LENGTH = 200;

const stageAttributes = {
  memory: 'darkroom.memory',
  found: 'darkroom.found',
  originPart: 'darkroom.origin.part',
  unchanged: 'darkroom.fetch.unchanged',
  lane: 'darkroom.lane',
  bytes: 'darkroom.bytes',
  format: 'darkroom.format',
  codec: 'darkroom.codec',
  widthPx: 'darkroom.width',
  heightPx: 'darkroom.height',
  frames: 'darkroom.frames',
  errorCode: 'darkroom.error.code',
} as const satisfies Record<keyof StageDetails, string>;

/**
 * Server span of a request (OpenTelemetry's HTTP semantic conventions). It omits the client's address, user agent, and
 * the query, which may contain a secret; it has the parameters parsed from the query.
 */
export class RequestSpan implements TracedRequest {
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #head: RequestHead;
  readonly #scheme: string;
  #context: Context | undefined;

  constructor(tracer: Tracer, span: Span, head: RequestHead, scheme: string) {
    this.#tracer = tracer;
    this.#span = span;
    this.#head = head;
    this.#scheme = scheme;
  }

  get isRecording(): boolean {
    return this.#span.isRecording();
  }

  begin(
    stage: StageName,
    leader?: RequestSpan,
  ): (details?: Readonly<StageDetails>, error?: unknown) => void {
    // Created with the first stage, since hits have none.
    this.#context ??= trace.setSpan(ROOT_CONTEXT, this.#span);
    const links = leader === undefined ? [] : [{ context: leader.#span.spanContext() }];
    const span = this.#tracer.startSpan(stage, { links }, this.#context);
    return (details = {}, error) => {
      for (const name of Object.keys(details) as (keyof StageDetails)[]) {
        span.setAttributes({ [stageAttributes[name]]: details[name] });
      }
      if (details.errorCode !== undefined) setErrorCode(span, details.errorCode);
      setError(span, error);
      span.end();
    };
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  end(response: TracedResponse): void {
    const { resource, status, code, media } = response;
    const { method = '', url = '', httpVersion } = this.#head;
    const isKnown = KNOWN_METHODS.has(method);
    const route = routeOf(resource);
    const server = serverOf(this.#head);
    if (route !== undefined) this.#span.updateName(`${spanNameOf(this.#head)} ${route}`);
    // One call is faster; the SDK skips `undefined` attributes.
    this.#span.setAttributes({
      [ATTR_HTTP_REQUEST_METHOD]: isKnown ? method : '_OTHER',
      [ATTR_HTTP_REQUEST_METHOD_ORIGINAL]: isKnown ? undefined : shorten(method),
      [ATTR_URL_SCHEME]: this.#scheme,
      [ATTR_URL_PATH]: describeTarget(splitTarget(url)[0]),
      [ATTR_NETWORK_PROTOCOL_VERSION]: httpVersion,
      [ATTR_SERVER_ADDRESS]: server?.address,
      [ATTR_SERVER_PORT]: server?.port,
      [ATTR_HTTP_ROUTE]: route,
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: status,
      'darkroom.client_gone': status === undefined ? true : undefined,
      'darkroom.request.id': response.id,
      'darkroom.resource': resource,
      'darkroom.cache': response.cache,
      'darkroom.bytes': response.bytes,
      'darkroom.width': media?.widthPx,
      'darkroom.height': media?.heightPx,
      'darkroom.format': media?.format,
      'darkroom.quality': media?.quality,
      'darkroom.animated': media?.isAnimated,
    });
    if (code !== undefined) setErrorCode(this.#span, code);
    this.#span.end();
  }
}

export function spanNameOf({ method = '' }: RequestHead): string {
  return KNOWN_METHODS.has(method) ? method : 'HTTP';
}

function serverOf({
  headers,
}: RequestHead): { readonly address: string; readonly port: number | undefined } | undefined {
  const [, address = '', port] =
    /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(headers.host ?? '') ?? [];
  if (address === '') return undefined;
  return { address: shorten(address), port: port === undefined ? undefined : Number(port) };
}

function shorten(text: string): string {
  return text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH)}…`;
}

function routeOf(resource: ResponseClass['resource']): string | undefined {
  if (resource === 'upload') return `${RELAY_PREFIX}{key}`;
  return resource === 'none' ? undefined : resourceRows[resource].template;
}

/** Adds the error of a stage to its span: a MediaError, an abort, or a bug. */
function setError(span: Span, error: unknown): void {
  if (error instanceof MediaError) {
    setErrorCode(span, error.code);
    const { cause } = error;
    if (cause instanceof SiteFailure) {
      span.setAttribute('darkroom.fetch.failure', cause.details.reason);
    }
  } else if (error instanceof Error) {
    // A client that disconnects is not an error.
    if (error.name === 'AbortError') span.setAttribute('darkroom.aborted', true);
    else setFailure(span, error.name);
  }
}

/** Adds an error response to a span; client errors are not failures (HTTP semantic conventions). */
function setErrorCode(span: Span, code: ErrorCode): void {
  span.setAttribute('darkroom.error.code', code);
  if (errorRegistry[code].status >= 500) setFailure(span, code);
}

function setFailure(span: Span, type: string): void {
  span.setAttribute(ATTR_ERROR_TYPE, type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
