import { unescape as decodePercents } from 'node:querystring';
import { type Environment, optional } from '../setting.ts';
import { anyText } from '../setting-types.ts';

/** The OpenTelemetry SDK reads and checks all other variables itself. */
export const tracingTable = {
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    anyText('any URL that OpenTelemetry accepts'),
    'URL of a collector that receives traces, over `http/protobuf` or `http/json`; all other [OpenTelemetry variables](https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/) for traces also apply',
  ),
};

const protocols = ['http/protobuf', 'http/json'] as const;

export function readTracing(environment: Environment) {
  if (!isTracing(environment)) return undefined;
  const propagators = (environment.OTEL_PROPAGATORS ?? 'tracecontext').split(',').map(wordOf);
  const headers = [
    environment.OTEL_EXPORTER_OTLP_HEADERS,
    environment.OTEL_EXPORTER_OTLP_TRACES_HEADERS,
  ];
  return {
    protocol: protocols.find((protocol) => protocol === protocolOf(environment)) ?? protocols[0],
    isContinuing: propagators.includes('tracecontext') && !propagators.includes('none'),
    /** Values of headers, and tokens after `Bearer`. */
    secrets: headers.flatMap((text = '') =>
      text.split(',').flatMap((pair) => {
        const value = pair.slice(pair.indexOf('=') + 1).trim();
        return [value, decodePercents(value)].flatMap((secret) => [secret, ...secret.split(' ')]);
      }),
    ),
  };
}

/** Spans sent to a port for gRPC would be lost without a clear error. */
export function findProtocolFault(environment: Environment): string | undefined {
  const protocol = protocolOf(environment);
  if (!isTracing(environment) || protocols.some((known) => known === protocol)) return undefined;
  const isForTraces = environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL !== undefined;
  const name = isForTraces ? 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL' : 'OTEL_EXPORTER_OTLP_PROTOCOL';
  return `${name}: expected http/protobuf or http/json, since OTLP over gRPC is not supported, but received ${JSON.stringify(environment[name])}`;
}

function isTracing(environment: Environment): boolean {
  if (wordOf(environment.OTEL_SDK_DISABLED) === 'true') return false;
  if (environment.OTEL_TRACES_EXPORTER !== undefined)
    return wordOf(environment.OTEL_TRACES_EXPORTER) === 'otlp';
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT } = environment;
  return (OTEL_EXPORTER_OTLP_ENDPOINT ?? OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) !== undefined;
}

function protocolOf(environment: Environment): string {
  const general = environment.OTEL_EXPORTER_OTLP_PROTOCOL ?? protocols[0];
  return wordOf(environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? general);
}

function wordOf(text = ''): string {
  return text.trim().toLowerCase();
}
