import { type Environment, optional } from '../setting.ts';
import { anyText } from '../setting-forms.ts';

/** The variable that switches traces on; the OpenTelemetry SDK reads and judges all others by itself. */
export const tracingTable = {
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    anyText('what OpenTelemetry takes'),
    'URL of a collector that requests are traced to, as `http/protobuf` or `http/json`; all other [variables of OpenTelemetry](https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/) for traces hold, too',
  ),
};

/** The forms of OTLP that are spoken here. */
const protocols = ['http/protobuf', 'http/json'] as const;

/**
 * Reads what is needed before the OpenTelemetry SDK is loaded, which reads its variables by itself;
 * `undefined`: there are none, and it is not loaded.
 */
export function readTracing(given: Environment) {
  if (!isTracing(given)) return undefined;
  const propagators = listOf(given.OTEL_PROPAGATORS ?? 'tracecontext');
  return {
    protocol: protocols.find((protocol) => protocol === askedProtocol(given)) ?? protocols[0],
    /** Whether the trace of a request's sender goes on here. */
    isContinuing: propagators.includes('tracecontext') && !propagators.includes('none'),
    /** Texts that must not stand in the log: a header's value, and what follows its `Bearer`. */
    secrets: [given.OTEL_EXPORTER_OTLP_HEADERS, given.OTEL_EXPORTER_OTLP_TRACES_HEADERS].flatMap(
      (headers) => readSecrets(headers ?? ''),
    ),
  };
}

/**
 * Finds a protocol that is not spoken: spans that are sent to a port for gRPC would be lost without a clear word. Where
 * there are no traces, variables for all programs of a machine are not judged.
 */
export function findProtocolFault(given: Environment): string | undefined {
  const asked = askedProtocol(given);
  if (!isTracing(given) || protocols.some((protocol) => protocol === asked)) return undefined;
  const isForTraces = given.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL !== undefined;
  const name = isForTraces ? 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL' : 'OTEL_EXPORTER_OTLP_PROTOCOL';
  return `${name}: expected http/protobuf or http/json, for OTLP over gRPC is not spoken here, but received ${JSON.stringify(given[name])}`;
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
