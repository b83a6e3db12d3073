import { randomUUID } from 'node:crypto';
import {
  DiagLogLevel,
  defaultTextMapGetter,
  diag,
  ROOT_CONTEXT,
  SpanKind,
  type Tracer as SpanMaker,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import {
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_VERSION,
} from '@opentelemetry/semantic-conventions';
import { withDeadline } from '../pipeline/abort.ts';
import type { Log } from '../pipeline/ports.ts';
import type { RequestHead, RequestSpan, Tracer } from '../pipeline/tracer.ts';
import { type CollectorAccess, createExporter } from './open-telemetry-export.ts';
import { nameOfMethod, OpenTelemetryRequestSpan } from './open-telemetry-span.ts';

/** Which requests are traced: OpenTelemetry's names. */
export interface SamplerChoice {
  readonly kind:
    | 'always_on'
    | 'always_off'
    | 'traceidratio'
    | 'parentbased_always_on'
    | 'parentbased_always_off'
    | 'parentbased_traceidratio';
  /** For the two that go by the trace id: which share of all. */
  readonly ratio: number;
}

/** What traces are made with. */
export interface OpenTelemetryOptions extends CollectorAccess {
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: SamplerChoice;
  /** Whether the trace of who asks goes on here. */
  readonly isContinuing: boolean;
  /** How spans are gathered before they are sent; those that find no room are dropped. */
  readonly batch: {
    readonly delayMs: number;
    readonly timeoutMs: number;
    readonly maxWaitingSpans: number;
    readonly maxSpans: number;
  };
  /** What the listener speaks. */
  readonly scheme: 'http' | 'https';
  /** Of this service. */
  readonly version: string;
  readonly log: Log;
}

/** The packages tell of what they drop each time they do; the log is told of it once in this time, in milliseconds. */
const WARNING_INTERVAL_MS = 60_000;

/** Longest wait for the collector at a stop, in milliseconds. */
const FLUSH_TIMEOUT_MS = 5_000;

/** Traces requests with OpenTelemetry, and sends them to a collector in the background. */
export function createOpenTelemetryTracer(options: OpenTelemetryOptions): Tracer {
  const { batch, log, version } = options;
  tellWarnings(log);
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({
        [ATTR_SERVICE_INSTANCE_ID]: randomUUID(),
        [ATTR_SERVICE_VERSION]: version,
        ...options.resource,
      }),
    ),
    sampler: createSampler(options.sampler),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: createExporter(options, log),
        scheduledDelayMillis: batch.delayMs,
        exportTimeoutMillis: batch.timeoutMs,
        maxQueueSize: batch.maxWaitingSpans,
        maxExportBatchSize: batch.maxSpans,
      }),
    ],
  });
  return new OpenTelemetryTracer(provider, options);
}

class OpenTelemetryTracer implements Tracer {
  readonly #provider: TracerProvider;
  readonly #maker: SpanMaker;
  readonly #options: OpenTelemetryOptions;
  readonly #propagator = new W3CTraceContextPropagator();

  constructor(provider: TracerProvider, options: OpenTelemetryOptions) {
    this.#provider = provider;
    this.#maker = provider.getTracer('darkroom', options.version);
    this.#options = options;
  }

  begin(head: RequestHead): RequestSpan {
    const { isContinuing, scheme } = this.#options;
    const parent = isContinuing
      ? this.#propagator.extract(ROOT_CONTEXT, head.headers, defaultTextMapGetter)
      : ROOT_CONTEXT;
    // No context is kept beside the call, as the packages offer: it would cost every request, traced or not.
    const name = nameOfMethod(head.method);
    const span = this.#maker.startSpan(name, { kind: SpanKind.SERVER }, parent);
    return new OpenTelemetryRequestSpan(this.#maker, span, head, scheme);
  }

  async close(maxWaitMs: number): Promise<void> {
    const waitMs = Math.min(Math.max(0, maxWaitMs), FLUSH_TIMEOUT_MS);
    const isLate = new Error(`The collector took longer than ${waitMs} ms.`);
    const never = new AbortController().signal;
    await withDeadline(
      waitMs,
      never,
      () => isLate,
      () => this.#provider.shutdown(),
    ).catch((error: unknown) => {
      // Of what failed, the exporter has told.
      if (error === isLate) {
        this.#options.log.warn({ reason: isLate.message }, 'not all traces could be sent');
      }
    });
  }
}

function createSampler({ kind, ratio }: SamplerChoice): Sampler {
  switch (kind) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratio);
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
  }
}

/** Spans that found no room, and the like. Failed batches are told by the exporter. */
function tellWarnings(log: Log): void {
  let toldMs = Number.NEGATIVE_INFINITY;
  const quiet = (): void => undefined;
  const warn = (reason: string): void => {
    const nowMs = performance.now();
    if (nowMs - toldMs < WARNING_INTERVAL_MS) return;
    toldMs = nowMs;
    log.warn({ reason }, 'OpenTelemetry');
  };
  const logger = { error: quiet, warn, info: quiet, debug: quiet, verbose: quiet };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}
