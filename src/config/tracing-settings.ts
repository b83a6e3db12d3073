import { z } from 'zod';
import { integer, milliseconds } from './setting-forms.ts';
import {
  attributePairs,
  collectorUrl,
  headerPairs,
  otlpProtocol,
  propagatorList,
  ratio,
  word,
} from './tracing-forms.ts';

/** How many spans are sent at once, if not fewer may wait. */
const BATCH_SPANS = 512;

/** Whether there are traces at all. */
const switches = {
  OTEL_SDK_DISABLED: word('true', 'false').optional(),
  OTEL_TRACES_EXPORTER: word('otlp', 'none').optional(),
};

/**
 * The variables of tracing: those of OpenTelemetry, with its names and defaults (OpenTelemetry Specification,
 * "Environment Variables"; "OpenTelemetry Protocol Exporter"). What is for traces alone wins.
 */
export const tracingForms = {
  ...switches,
  OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl.default('http://localhost:4318'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collectorUrl.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: otlpProtocol.default('http/protobuf'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: otlpProtocol.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: headerPairs.default({}),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: headerPairs.default({}),
  OTEL_EXPORTER_OTLP_TIMEOUT: milliseconds(10_000),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: milliseconds(10_000).removeDefault().optional(),
  OTEL_EXPORTER_OTLP_COMPRESSION: word('none', 'gzip').default('none'),
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: word('none', 'gzip').optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: attributePairs.default({}),
  OTEL_TRACES_SAMPLER: word(
    'parentbased_always_on',
    'parentbased_always_off',
    'parentbased_traceidratio',
    'always_on',
    'always_off',
    'traceidratio',
  ).default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: ratio.default(1),
  OTEL_PROPAGATORS: propagatorList.default(['tracecontext']),
  OTEL_BSP_SCHEDULE_DELAY: milliseconds(5_000),
  OTEL_BSP_EXPORT_TIMEOUT: milliseconds(30_000),
  OTEL_BSP_MAX_QUEUE_SIZE: integer(1, 1_000_000, 'spans', 2_048),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: integer(1, 1_000_000, 'spans', BATCH_SPANS)
    .removeDefault()
    .optional(),
};

type Variables = Readonly<Record<string, string | undefined>>;

type TracingValues = z.infer<z.ZodObject<typeof tracingForms>>;

/**
 * The variables without those that have no say: of tracing where there is none, and those in whose place there is one
 * for traces alone. They are somebody else's, meant for all programs of a machine, and whether they are right is none
 * of our business.
 */
export function withoutIdleTracing(given: Variables): Variables {
  const isIdle = isTracing(given)
    ? (name: string): boolean => isReplaced(name, given)
    : (name: string): boolean =>
        Object.hasOwn(tracingForms, name) && !Object.hasOwn(switches, name);
  return Object.fromEntries(Object.entries(given).filter(([name]) => !isIdle(name)));
}

/** Not of headers, which are put together. */
function isReplaced(name: string, given: Variables): boolean {
  const [, what] = /^OTEL_EXPORTER_OTLP_(ENDPOINT|PROTOCOL|TIMEOUT|COMPRESSION)$/.exec(name) ?? [];
  return what !== undefined && given[`OTEL_EXPORTER_OTLP_TRACES_${what}`] !== undefined;
}

/** On where it is asked for, or where there is a collector. */
function isTracing(given: Variables): boolean {
  if (isWord(given.OTEL_SDK_DISABLED, 'true')) return false;
  return given.OTEL_TRACES_EXPORTER === undefined
    ? given.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined ||
        given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT !== undefined
    : isWord(given.OTEL_TRACES_EXPORTER, 'otlp');
}

function isWord(text: string | undefined, expected: string): boolean {
  return text?.trim().toLowerCase() === expected;
}

/** Where traces go, and which of them; `undefined`: there are none. */
export function readTracing(given: Variables, values: TracingValues) {
  if (!isTracing(given)) return undefined;
  const headers = {
    ...values.OTEL_EXPORTER_OTLP_HEADERS,
    ...values.OTEL_EXPORTER_OTLP_TRACES_HEADERS,
  };
  const collector = values.OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/$/, '');
  return {
    url: values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? `${collector}/v1/traces`,
    protocol: values.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? values.OTEL_EXPORTER_OTLP_PROTOCOL,
    headers,
    timeoutMs: values.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ?? values.OTEL_EXPORTER_OTLP_TIMEOUT,
    compression:
      values.OTEL_EXPORTER_OTLP_TRACES_COMPRESSION ?? values.OTEL_EXPORTER_OTLP_COMPRESSION,
    /** What must not stand in the log: a header's value, and what follows its `Bearer`. */
    secrets: Object.values(headers).flatMap((value) => [value, ...value.split(' ')]),
    resource: {
      'service.name': 'darkroom',
      ...values.OTEL_RESOURCE_ATTRIBUTES,
      ...(values.OTEL_SERVICE_NAME !== undefined && { 'service.name': values.OTEL_SERVICE_NAME }),
    },
    sampler: { kind: values.OTEL_TRACES_SAMPLER, ratio: values.OTEL_TRACES_SAMPLER_ARG },
    /** Whether the trace of who asks goes on here. */
    isContinuing: isContinuing(values.OTEL_PROPAGATORS),
    batch: {
      delayMs: values.OTEL_BSP_SCHEDULE_DELAY,
      timeoutMs: values.OTEL_BSP_EXPORT_TIMEOUT,
      maxWaitingSpans: values.OTEL_BSP_MAX_QUEUE_SIZE,
      maxSpans:
        values.OTEL_BSP_MAX_EXPORT_BATCH_SIZE ??
        Math.min(BATCH_SPANS, values.OTEL_BSP_MAX_QUEUE_SIZE),
    },
  } as const;
}

function isContinuing(propagators: readonly string[]): boolean {
  return propagators.includes('tracecontext') && !propagators.includes('none');
}
