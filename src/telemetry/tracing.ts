import { randomUUID } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { formatCauses } from '../contract/errors.ts';
import { withDeadline } from '../pipeline/abort.ts';
import type { Log } from '../pipeline/ports.ts';
import {
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
  BasicTracerProvider,
  BatchSpanProcessor,
  DiagLogLevel,
  defaultResource,
  defaultTextMapGetter,
  detectResources,
  diag,
  envDetector,
  JsonExporter,
  ProtobufExporter,
  ROOT_CONTEXT,
  resourceFromAttributes,
  type SpanExporter,
  SpanKind,
  setGlobalErrorHandler,
  W3CTraceContextPropagator,
} from './opentelemetry.ts';
import { type RequestHead, RequestSpan, spanNameOf } from './request-span.ts';

export interface Tracing {
  /** Begins the span of a request, in the sender's trace if it has one. */
  begin(head: RequestHead): RequestSpan;
  /** Sends remaining spans within `maxWaitMs`; never throws. */
  close(maxWaitMs: number): Promise<void>;
}

/** Minimum interval of equal warnings in milliseconds; the SDK repeats them. */
const WARNING_INTERVAL_MS = 60_000;

const FLUSH_TIMEOUT_MS = 5_000;

/** Traces requests, and exports spans to a collector in the background. The SDK reads the other `OTEL_*` variables. */
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
  log.info({ protocol }, 'tracing requests');
  return {
    begin: (head) => {
      const parent = isContinuing
        ? propagator.extract(ROOT_CONTEXT, head.headers, defaultTextMapGetter)
        : ROOT_CONTEXT;
      // Asynchronous context storage would cost every request, traced or not.
      const span = tracer.startSpan(spanNameOf(head), { kind: SpanKind.SERVER }, parent);
      return new RequestSpan(tracer, span, head, scheme);
    },
    close: async (maxWaitMs) => {
      const waitMs = Math.min(Math.max(0, maxWaitMs), FLUSH_TIMEOUT_MS);
      const isLate = new Error(`The collector took longer than ${waitMs} ms.`);
      const stop = () => provider.shutdown();
      await withDeadline(waitMs, undefined, () => isLate, stop).catch((error: unknown) => {
        // `logWarnings` has logged other failures.
        if (error === isLate) log.warn({ reason: isLate.message }, 'traces not sent at exit');
      });
    },
  };
}

/** Logs warnings of the SDK and failed exports, each kind at intervals. */
function logWarnings(log: Log): void {
  const loggedMs = new Map<string, number>();
  const warn = (reason: string, message: string): void => {
    const kind = reason.replaceAll(/\d+/g, '#');
    const nowMs = performance.now();
    if (nowMs - (loggedMs.get(kind) ?? -Infinity) < WARNING_INTERVAL_MS) return;
    loggedMs.set(kind, nowMs);
    log.warn({ reason }, message);
  };
  const logWarning = (...parts: readonly unknown[]): void =>
    warn(parts.map(String).join(' '), 'OpenTelemetry');
  const quiet = (): void => undefined;
  const logger = { error: logWarning, warn: logWarning, info: quiet, debug: quiet, verbose: quiet };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  setGlobalErrorHandler((failure) => warn(describe(failure), 'sending traces failed; dropped'));
}

function describe(failure: unknown): string {
  if (!(failure instanceof Error)) return formatCauses(failure).slice(2);
  const code = 'code' in failure && !failure.message.includes(String(failure.code));
  return formatCauses(failure).slice(2) + (code ? ` (${failure.code})` : '');
}
