import { randomUUID } from 'node:crypto';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode, setGlobalErrorHandler } from '@opentelemetry/core';
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
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
} from '@opentelemetry/semantic-conventions';
import type { Config } from '../config/config.ts';
import { withDeadline } from '../pipeline/abort.ts';
import type { Log } from '../pipeline/ports.ts';
import { RequestTracer } from './request-tracer.ts';

/** Tracing that is on. */
export interface Tracing {
  readonly tracer: RequestTracer;
  /** Sends what is left, but no longer than a time, in milliseconds; never throws. */
  close(maxWaitMs: number): Promise<void>;
}

/** The SDK repeats a warning as often as its cause; the log has it once in this time, in milliseconds. */
const WARNING_INTERVAL_MS = 60_000;

/** Longest wait for the collector at a stop, in milliseconds. */
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
  logFailures(exporter, log);
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
  log.info({ protocol }, 'Requests are traced');
  return {
    tracer: new RequestTracer(provider.getTracer('darkroom', version), { isContinuing, scheme }),
    close: async (maxWaitMs) => {
      const waitMs = Math.min(Math.max(0, maxWaitMs), FLUSH_TIMEOUT_MS);
      const isLate = new Error(`The collector took longer than ${waitMs} ms.`);
      const never = new AbortController().signal;
      await withDeadline(
        waitMs,
        never,
        () => isLate,
        () => provider.shutdown(),
      ).catch((error: unknown) => {
        // Other failures have been logged by the exporter.
        if (error === isLate) log.warn({ reason: isLate.message }, 'not all traces could be sent');
      });
    },
  };
}

/** Logs the failures of an exporter once, with their cause, and once more when it works again; not for each batch. */
function logFailures(exporter: SpanExporter, log: Log): void {
  const send = exporter.export.bind(exporter);
  /** Since it failed. */
  let lostSpans = 0;
  const note = ({ code, error }: ExportResult, spans: number): void => {
    const lostBefore = lostSpans;
    lostSpans = code === ExportResultCode.SUCCESS ? 0 : lostBefore + spans;
    if (code === ExportResultCode.SUCCESS) {
      if (lostBefore > 0) log.info({ lostSpans: lostBefore }, 'traces are taken again');
    } else if (lostBefore === 0) {
      log.warn({ reason: reasonOf(error) }, 'traces cannot be sent; they are dropped');
    }
  };
  exporter.export = (spans, report) =>
    send(spans, (result) => {
      note(result, spans.length);
      report(result);
    });
}

/** The words alone: what a collector says may be long, and is no error of ours. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason was given';
  const { message, name, cause } = error;
  const code = 'code' in error && !message.includes(String(error.code)) ? ` (${error.code})` : '';
  const because = cause instanceof Error ? `: ${reasonOf(cause)}` : '';
  return `${message === '' ? name : message}${code}${because}`;
}

/** The SDK's own words, on a variable that it does not understand, or on spans that were dropped. */
function logWarnings(log: Log): void {
  const loggedMs = new Map<string, number>();
  const warn = (...parts: readonly unknown[]): void => {
    const reason = parts.map(String).join(' ');
    const kind = reason.replaceAll(/\d+/g, '#');
    const nowMs = performance.now();
    if (nowMs - (loggedMs.get(kind) ?? -Infinity) < WARNING_INTERVAL_MS) return;
    loggedMs.set(kind, nowMs);
    log.warn({ reason }, 'OpenTelemetry');
  };
  const quiet = (): void => undefined;
  const logger = { error: warn, warn, info: quiet, debug: quiet, verbose: quiet };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  // Failed batches: the exporter has logged them.
  setGlobalErrorHandler(quiet);
}
