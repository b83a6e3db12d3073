import { unescape as decodePercents } from 'node:querystring';
import { type Environment, optional } from '../setting.ts';
import { anyText } from '../setting-forms.ts';

/** The variable that switches traces on; the OpenTelemetry SDK reads and judges all others by itself. */
export const tracingTable = {
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    anyText('any form that OpenTelemetry accepts'),
    'URL of a collector that receives traces, over `http/protobuf` or `http/json`; all other [OpenTelemetry variables](https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/) for traces also apply',
  ),
};

const protocols = ['http/protobuf', 'http/json'] as const;

/** Reads what is needed before the SDK is loaded; `undefined`: requests are not traced, and it is not loaded. */
export function readTracing(given: Environment) {
  if (!isTracing(given)) return undefined;
  const propagators = (given.OTEL_PROPAGATORS ?? 'tracecontext').split(',').map(wordOf);
  const headers = [given.OTEL_EXPORTER_OTLP_HEADERS, given.OTEL_EXPORTER_OTLP_TRACES_HEADERS];
  return {
    protocol: protocols.find((protocol) => protocol === askedProtocol(given)) ?? protocols[0],
    /** Whether the trace of a request's sender goes on here. */
    isContinuing: propagators.includes('tracecontext') && !propagators.includes('none'),
    /** Texts that must not stand in the log: the value of a header, and what follows its `Bearer`. */
    secrets: headers.flatMap((text = '') =>
      text.split(',').flatMap((pair) => {
        const value = pair.slice(pair.indexOf('=') + 1).trim();
        return [value, decodePercents(value)].flatMap((secret) => [secret, ...secret.split(' ')]);
      }),
    ),
  };
}

/** Finds a protocol that is not spoken: spans that are sent to a port for gRPC would be lost without a clear word. */
export function findProtocolFault(given: Environment): string | undefined {
  const asked = askedProtocol(given);
  if (!isTracing(given) || protocols.some((protocol) => protocol === asked)) return undefined;
  const isForTraces = given.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL !== undefined;
  const name = isForTraces ? 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL' : 'OTEL_EXPORTER_OTLP_PROTOCOL';
  return `${name}: expected http/protobuf or http/json, since OTLP over gRPC is not supported, but received ${JSON.stringify(given[name])}`;
}

/** Whether traces are asked for, or there is a collector. */
function isTracing(given: Environment): boolean {
  if (wordOf(given.OTEL_SDK_DISABLED) === 'true') return false;
  if (given.OTEL_TRACES_EXPORTER !== undefined)
    return wordOf(given.OTEL_TRACES_EXPORTER) === 'otlp';
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT } = given;
  return (OTEL_EXPORTER_OTLP_ENDPOINT ?? OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) !== undefined;
}

function askedProtocol(given: Environment): string {
  const general = given.OTEL_EXPORTER_OTLP_PROTOCOL ?? protocols[0];
  return wordOf(given.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? general);
}

function wordOf(text = ''): string {
  return text.trim().toLowerCase();
}
