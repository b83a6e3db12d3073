import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  type Tracer as SpanMaker,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
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
} from '@opentelemetry/semantic-conventions';
import { type ErrorCode, errorRegistry, MediaError } from '../contract/errors.ts';
import { pathOfTarget } from '../contract/media-request.ts';
import { resourceRows } from '../contract/resources.ts';
import type {
  RequestHead,
  RequestSpan,
  SpanDetails,
  SpanName,
  StageSpan,
  TracedResponse,
} from '../pipeline/tracer.ts';

/** Whatever else somebody sends is `_OTHER` (HTTP semantic conventions): span names have few values. */
const KNOWN_METHODS = new Set([
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'TRACE',
]);

/** Longest text of a client's that is told, in characters. */
const MAX_TEXT_LENGTH = 200;

/** Names of `SpanDetails` in traces. */
const detailNames = {
  memory: 'darkroom.memory',
  isFound: 'darkroom.found',
  part: 'darkroom.origin.part',
  lane: 'darkroom.lane',
  slot: 'darkroom.slot',
  format: 'darkroom.format',
  widthPx: 'darkroom.width',
  heightPx: 'darkroom.height',
  frames: 'darkroom.frames',
  bytes: 'darkroom.bytes',
} as const satisfies Record<keyof SpanDetails, string>;

/** How the name of a request's span begins. */
export function nameOfMethod(method: string): string {
  return KNOWN_METHODS.has(method) ? method : 'HTTP';
}

/**
 * A request as OpenTelemetry's server span, by its HTTP semantic conventions. Left out are what is the client's own
 * (address, user agent) and what may hold a secret (the query); what the query means is told as far as it is ours.
 */
export class OpenTelemetryRequestSpan implements RequestSpan {
  readonly #maker: SpanMaker;
  readonly #span: Span;
  readonly #head: RequestHead;
  readonly #scheme: string;
  #context: Context | undefined;

  constructor(maker: SpanMaker, span: Span, head: RequestHead, scheme: 'http' | 'https') {
    this.#maker = maker;
    this.#span = span;
    this.#head = head;
    this.#scheme = scheme;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get isRecorded(): boolean {
    return this.#span.isRecording();
  }

  begin(name: SpanName, joined?: RequestSpan): StageSpan {
    this.#context ??= trace.setSpan(ROOT_CONTEXT, this.#span);
    const links =
      joined instanceof OpenTelemetryRequestSpan ? [{ context: joined.#span.spanContext() }] : [];
    return new OpenTelemetryRoomSpan(this.#maker.startSpan(name, { links }, this.#context));
  }

  end(answer: TracedResponse): void {
    const { resource, status, code, media } = answer;
    const { method, target, httpVersion } = this.#head;
    const isKnown = KNOWN_METHODS.has(method);
    const route = resource === 'none' ? undefined : resourceRows[resource].template;
    const server = serverOf(this.#head);
    if (route !== undefined) this.#span.updateName(`${nameOfMethod(method)} ${route}`);
    // In one piece, since each hit has them: without those that are `undefined`, as the SDK takes them.
    this.#span.setAttributes({
      [ATTR_HTTP_REQUEST_METHOD]: isKnown ? method : '_OTHER',
      [ATTR_HTTP_REQUEST_METHOD_ORIGINAL]: isKnown ? undefined : shorten(method),
      [ATTR_URL_SCHEME]: this.#scheme,
      [ATTR_URL_PATH]: shorten(pathOfTarget(target)),
      [ATTR_NETWORK_PROTOCOL_VERSION]: httpVersion === '2.0' ? '2' : httpVersion,
      [ATTR_SERVER_ADDRESS]: server?.address,
      [ATTR_SERVER_PORT]: server?.port,
      [ATTR_HTTP_ROUTE]: route,
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: status,
      'darkroom.client_gone': status === undefined ? true : undefined,
      'darkroom.request.id': answer.id,
      'darkroom.resource': resource,
      'darkroom.cache': answer.cache,
      'darkroom.bytes': answer.bytes,
      'darkroom.width': media?.widthPx,
      'darkroom.height': media?.heightPx,
      'darkroom.format': media?.format,
      'darkroom.quality': media?.quality,
      'darkroom.animated': media?.isAnimated,
    });
    if (code !== undefined) noteCode(this.#span, code);
    this.#span.end();
  }
}

/** A room of a request, as a span inside of its own. */
class OpenTelemetryRoomSpan implements StageSpan {
  readonly #span: Span;

  constructor(span: Span) {
    this.#span = span;
  }

  note(details: SpanDetails): void {
    for (const [name, value] of Object.entries(details)) {
      if (isDetail(name)) this.#span.setAttribute(detailNames[name], value);
    }
  }

  end(error?: unknown): void {
    if (error instanceof MediaError) noteCode(this.#span, error.code);
    else if (error instanceof Error) {
      // Of one who has left, nothing is wrong.
      if (error.name === 'AbortError') this.#span.setAttribute('darkroom.aborted', true);
      else noteFailure(this.#span, error.name);
    }
    this.#span.end();
  }
}

function isDetail(name: string): name is keyof SpanDetails {
  return Object.hasOwn(detailNames, name);
}

/** What is the client's fault is an answer like others, here as in the conventions. */
function noteCode(span: Span, code: ErrorCode): void {
  span.setAttribute('darkroom.error.code', code);
  if (errorRegistry[code].status >= 500) noteFailure(span, code);
}

function noteFailure(span: Span, type: string): void {
  span.setAttribute(ATTR_ERROR_TYPE, type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Host and port, as the client calls them. */
function serverOf({
  headers,
}: RequestHead): { readonly address: string; readonly port: number | undefined } | undefined {
  const authority = headers[':authority'] ?? headers.host;
  if (typeof authority !== 'string') return undefined;
  const [, address = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(authority) ?? [];
  if (address === '') return undefined;
  return { address: shorten(address), port: port === undefined ? undefined : Number(port) };
}

function shorten(text: string): string {
  return text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH)}…`;
}
