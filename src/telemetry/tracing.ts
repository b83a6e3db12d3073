import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  type Context,
  DiagLogLevel,
  defaultTextMapGetter,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_REQUEST_METHOD_ORIGINAL,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_NETWORK_PROTOCOL_VERSION,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
} from '@opentelemetry/semantic-conventions';
import type { Config } from '../config/config.ts';
import { type ErrorCode, formatCauses } from '../contract/errors.ts';
import { type MediaRequest, splitTarget } from '../contract/media-request.ts';
import { resourceRows } from '../contract/resources.ts';
import { RELAY_PREFIX } from '../contract/signing/relay-capability.ts';
import { withDeadline } from '../pipeline/abort.ts';
import type { ResponseClass } from '../pipeline/meter.ts';
import type { Log } from '../pipeline/ports.ts';
import { type CacheUse, noteErrorCode, type TracedRequest } from '../pipeline/request-trace.ts';
import { describeTarget } from './redaction.ts';

/** Tracing of requests. */
export interface Tracing {
  /** Begins a span for a request, in its sender's trace if there is one. */
  begin(head: RequestHead): RequestSpan;
  /** Sends what is left within a time, in milliseconds; never throws. */
  close(maxWaitMs: number): Promise<void>;
}

/** Interval at which a warning is logged again while its cause lasts, in milliseconds; the SDK repeats it each time. */
const WARNING_INTERVAL_MS = 60_000;

const FLUSH_TIMEOUT_MS = 5_000;

/**
 * Traces requests with OpenTelemetry, and sends them to a collector in the background. This file alone loads the
 * SDK, which reads `OTEL_*` by itself: where spans go, which ones, how many wait.
 */
export function openTracing(
  { http, release: { version } }: Pick<Config, 'http' | 'release'>,
  { protocol, isContinuing }: NonNullable<Config['tracing']>,
  log: Log,
): Tracing {
  logWarnings(log);
  const exporter: SpanExporter =
    protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter();
  const own = resourceFromAttributes({
    [ATTR_SERVICE_NAME]: 'darkroom',
    [ATTR_SERVICE_INSTANCE_ID]: randomUUID(),
    [ATTR_SERVICE_VERSION]: version,
  });
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(own)
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const scheme = http.tls === undefined ? 'http' : 'https';
  const tracer = provider.getTracer('darkroom', version);
  const propagator = new W3CTraceContextPropagator();
  log.info({ protocol }, 'Requests are traced');
  return {
    begin: (head) => {
      const parent = isContinuing
        ? propagator.extract(ROOT_CONTEXT, head.headers, defaultTextMapGetter)
        : ROOT_CONTEXT;
      // The SDK could keep the context in asynchronous storage, which costs every request, traced or not.
      const span = tracer.startSpan(nameOf(head), { kind: SpanKind.SERVER }, parent);
      return new RequestSpan(tracer, span, head, scheme);
    },
    close: async (maxWaitMs) => {
      const waitMs = Math.min(Math.max(0, maxWaitMs), FLUSH_TIMEOUT_MS);
      const isLate = new Error(`The collector took longer than ${waitMs} ms.`);
      const stop = () => provider.shutdown();
      await withDeadline(waitMs, undefined, () => isLate, stop).catch((error: unknown) => {
        // Other failures have been logged.
        if (error === isLate) log.warn({ reason: isLate.message }, 'not all traces could be sent');
      });
    },
  };
}

/** Logs the warnings of the SDK, and why a collector did not take spans: each kind once in a while. */
function logWarnings(log: Log): void {
  const loggedMs = new Map<string, number>();
  const warn = (reason: string, message: string): void => {
    const kind = reason.replaceAll(/\d+/g, '#');
    const nowMs = performance.now();
    if (nowMs - (loggedMs.get(kind) ?? -Infinity) < WARNING_INTERVAL_MS) return;
    loggedMs.set(kind, nowMs);
    log.warn({ reason }, message);
  };
  const say = (...parts: readonly unknown[]): void =>
    warn(parts.map(String).join(' '), 'OpenTelemetry');
  const quiet = (): void => undefined;
  const logger = { error: say, warn: say, info: quiet, debug: quiet, verbose: quiet };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  setGlobalErrorHandler((failure) =>
    warn(describe(failure), 'traces cannot be sent; they are dropped'),
  );
}

/** Describes a failed batch by message and code: what a collector says may be long. */
function describe(failure: unknown): string {
  if (!(failure instanceof Error)) return formatCauses(failure).slice(2);
  const code = 'code' in failure && !failure.message.includes(String(failure.code));
  return formatCauses(failure).slice(2) + (code ? ` (${failure.code})` : '');
}

/** Head of a request; a trace shows only the path of its URL. */
type RequestHead = Pick<IncomingMessage, 'method' | 'url' | 'httpVersion' | 'headers'>;

interface TracedResponse {
  readonly resource: ResponseClass['resource'];
  /** `undefined` if the client left before there was a response. */
  readonly status: number | undefined;
  readonly code: ErrorCode | undefined;
  readonly cache: CacheUse;
  readonly bytes: number;
  /** `X-Request-Id` of the response, if any. */
  readonly id: string | undefined;
  readonly media: MediaRequest | undefined;
}

/** Any other method is `_OTHER` (HTTP semantic conventions): span names have few values. */
const KNOWN_METHODS = new Set('CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE'.split(' '));

/** Longest text from a client that a span shows, in characters. */
const MAX_TEXT_LENGTH = 200;

/**
 * A request as OpenTelemetry's server span, by its HTTP semantic conventions. A span leaves out what belongs to the client
 * (address, user agent) and what may contain a secret (the query); it shows the parameters that were read from the query.
 */
export class RequestSpan implements TracedRequest {
  readonly tracer: Tracer;
  readonly span: Span;
  readonly #head: RequestHead;
  readonly #scheme: string;
  #context: Context | undefined;

  constructor(tracer: Tracer, span: Span, head: RequestHead, scheme: string) {
    this.tracer = tracer;
    this.span = span;
    this.#head = head;
    this.#scheme = scheme;
  }

  /** Created with the first part: hits have no parts. */
  get context(): Context {
    this.#context ??= trace.setSpan(ROOT_CONTEXT, this.span);
    return this.#context;
  }

  /** 32 hexadecimal digits (W3C Trace Context §3.2.2.3). */
  get traceId(): string {
    return this.span.spanContext().traceId;
  }

  end(response: TracedResponse): void {
    const { resource, status, code, media } = response;
    const { method = '', url = '', httpVersion } = this.#head;
    const isKnown = KNOWN_METHODS.has(method);
    const route = routeOf(resource);
    const server = serverOf(this.#head);
    if (route !== undefined) this.span.updateName(`${nameOf(this.#head)} ${route}`);
    // In one call, since each hit has them; the SDK skips attributes that are `undefined`.
    this.span.setAttributes({
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
    if (code !== undefined) noteErrorCode(this.span, code);
    this.span.end();
  }
}

function nameOf({ method = '' }: RequestHead): string {
  return KNOWN_METHODS.has(method) ? method : 'HTTP';
}

/** Returns host and port of the `Host` header. */
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
