import { randomUUID } from 'node:crypto';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { setGlobalErrorHandler } from '@opentelemetry/core';
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
import { formatCauses } from '../contract/errors.ts';
import { withDeadline } from '../pipeline/abort.ts';
import type { Log } from '../pipeline/ports.ts';
import { RequestTracer } from './request-tracer.ts';

/** Tracing of requests. */
export interface Tracing {
  readonly tracer: RequestTracer;
  /** Sends what is left within a time, in milliseconds; never throws. */
  close(maxWaitMs: number): Promise<void>;
}

/** Interval at which a warning is logged again while its cause lasts, in milliseconds; the SDK repeats it each time. */
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
