import { type Environment, optional, type Setting } from '../setting.ts';
import { anyText, looseChoice } from '../setting-forms.ts';

/** How OpenTelemetry writes lists. */
const PAIRS = '`name=value,name=value`, percent-encoded';

/** What the OpenTelemetry SDK reads and judges by itself: of a wrong value, the SDK warns. */
function ofSdk(usual: string, description: string, isSecret?: true): Setting<string> {
  const defaultText = usual === '' ? '' : `\`${usual}\``;
  return optional(asOpenTelemetryHasIt, description, {
    defaultText,
    ...(isSecret && { isSecret }),
  });
}

const asOpenTelemetryHasIt = anyText('what OpenTelemetry takes');

/** The variables of traces. */
export const tracingTable = {
  OTEL_TRACES_EXPORTER: optional(
    looseChoice('otlp', 'none'),
    '`otlp`: requests are traced; `none`: not. Unless they are, the variables below are not even looked at',
    { defaultText: '`otlp` where one of the two endpoints is set, else `none`' },
  ),
  OTEL_SDK_DISABLED: optional(
    looseChoice('true', 'false'),
    '`true`: no traces, whatever else is set',
    { defaultText: '`false`' },
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: ofSdk(
    'http://localhost:4318',
    '`http` or `https` URL of a collector; `/v1/traces` is appended',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ofSdk('', 'the same for traces alone, as it is'),
  OTEL_EXPORTER_OTLP_PROTOCOL: ofSdk('http/protobuf', 'or `http/json`; gRPC is not spoken'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: ofSdk('', 'the same for traces alone'),
  OTEL_EXPORTER_OTLP_HEADERS: ofSdk('', `headers to send along, ${PAIRS}; never shown`, true),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: ofSdk('', 'more of them, for traces alone', true),
  OTEL_EXPORTER_OTLP_TIMEOUT: ofSdk('10000', 'milliseconds for a batch, with all attempts'),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: ofSdk('', 'the same for traces alone'),
  OTEL_EXPORTER_OTLP_COMPRESSION: ofSdk('none', 'or `gzip`'),
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: ofSdk('', 'the same for traces alone'),
  OTEL_SERVICE_NAME: ofSdk('darkroom', 'name of the service in traces'),
  OTEL_RESOURCE_ATTRIBUTES: ofSdk('', `what else to tell of it, ${PAIRS}`),
  OTEL_TRACES_SAMPLER: ofSdk(
    'parentbased_always_on',
    'which requests are recorded: `always_on`, `always_off`, `traceidratio`, or with `parentbased_` before it, as the sender has decided, where there is one',
  ),
  OTEL_TRACES_SAMPLER_ARG: ofSdk('1', 'share of all, 0 to 1, for the two with `traceidratio`'),
  OTEL_PROPAGATORS: ofSdk(
    'tracecontext',
    "`none`: a trace of the sender's (`traceparent`) does not go on here",
  ),
  OTEL_BSP_SCHEDULE_DELAY: ofSdk('5000', 'milliseconds that spans are gathered before they leave'),
  OTEL_BSP_EXPORT_TIMEOUT: ofSdk('30000', 'milliseconds after which a batch is given up'),
  OTEL_BSP_MAX_QUEUE_SIZE: ofSdk('2048', 'spans that may wait; more are dropped'),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: ofSdk('512', 'spans sent at once, as many as may wait at most'),
};

/** The forms of OTLP that are spoken here. */
const protocols = ['http/protobuf', 'http/json'] as const;

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
