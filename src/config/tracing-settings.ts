import type { Environment } from './settings.ts';

/** The forms of OTLP that are spoken here. */
const protocols = ['http/protobuf', 'http/json'] as const;

/** A form of OTLP. */
export type OtlpProtocol = (typeof protocols)[number];

/**
 * What is to be known of traces before the OpenTelemetry SDK is loaded, which reads its variables by itself;
 * `undefined`: there are none, and it is not loaded.
 */
export function readTracing(given: Environment) {
  if (!isTracing(given)) return undefined;
  const propagators = listOf(given.OTEL_PROPAGATORS ?? 'tracecontext');
  return {
    protocol: protocols.find((protocol) => protocol === askedProtocol(given)) ?? protocols[0],
    /** Whether the trace of a request's sender goes on here. */
    isContinuing: propagators.includes('tracecontext') && !propagators.includes('none'),
    /** What must not stand in the log: a header's value, and what follows its `Bearer`. */
    secrets: [given.OTEL_EXPORTER_OTLP_HEADERS, given.OTEL_EXPORTER_OTLP_TRACES_HEADERS].flatMap(
      (headers) => readSecrets(headers ?? ''),
    ),
  };
}

/**
 * Of a protocol that is not spoken, what is: spans that are sent to a port for gRPC would be lost without a clear
 * word. Variables for all programs of a machine are not judged where they have no say here: where there are no
 * traces, or another variable stands for traces alone.
 */
export function findProtocolFault(
  given: Environment,
  scope: 'general' | 'traces',
): string | undefined {
  const isForTraces = given.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL !== undefined;
  if (!isTracing(given) || isForTraces !== (scope === 'traces')) return undefined;
  const isSpoken = protocols.some((protocol) => protocol === askedProtocol(given));
  return isSpoken
    ? undefined
    : 'http/protobuf or http/json, for OTLP over gRPC is not spoken here,';
}

/** On where it is asked for, or where there is a collector. */
function isTracing(given: Environment): boolean {
  if (isWord(given.OTEL_SDK_DISABLED, 'true')) return false;
  return given.OTEL_TRACES_EXPORTER === undefined
    ? given.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined ||
        given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT !== undefined
    : isWord(given.OTEL_TRACES_EXPORTER, 'otlp');
}

function askedProtocol(given: Environment): string {
  const general = given.OTEL_EXPORTER_OTLP_PROTOCOL ?? protocols[0];
  return (given.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? general).trim().toLowerCase();
}

function isWord(text: string | undefined, expected: string): boolean {
  return text?.trim().toLowerCase() === expected;
}

function listOf(text: string): readonly string[] {
  return text.split(',').map((item) => item.trim().toLowerCase());
}

/** The values of `name=value` pairs as they came and as they are decoded, and the words of each. */
function readSecrets(headers: string): string[] {
  return headers.split(',').flatMap((pair) => {
    const raw = pair.slice(pair.indexOf('=') + 1).trim();
    return [raw, decode(raw)].flatMap((value) => [value, ...value.split(' ')]);
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
