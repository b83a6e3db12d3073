import { createServer, type IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { onTestFinished, vi } from 'vitest';
import type { Environment } from '../../../src/config/setting.ts';
import { listenUntilEnd } from '../at-end.ts';

export type ReceivedSpan = ReturnType<typeof readJsonSpans>[number];

export type OtlpReceiver = Awaited<ReturnType<typeof useOtlpReceiver>>;

/** Starts a collector of traces until the end of the test. */
export async function useOtlpReceiver() {
  const spans: ReceivedSpan[] = [];
  const batches: { path: string; headers: IncomingHttpHeaders; body: Buffer }[] = [];
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    const { headers, url = '' } = request;
    batches.push({ path: url, headers, body });
    if (receiver.mood === 'hangs') return;
    if (receiver.mood === 'refuses') return void response.writeHead(400).end('no');
    const isJson = headers['content-type'] === 'application/json';
    if (isJson) spans.push(...readJsonSpans(body.toString()));
    response.writeHead(200, { 'content-type': headers['content-type'] }).end(isJson ? '{}' : '');
  });
  const port = await listenUntilEnd(server);
  const receiver = {
    /** Value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
    url: `http://127.0.0.1:${port}`,
    mood: 'takes' as 'takes' | 'refuses' | 'hangs',
    /** Spans received as JSON, in the order in which they ended. */
    spans,
    batches,
  };
  return receiver;
}

/** Returns the settings that send traces to a collector, and sets them in the environment, where the SDK reads them. */
export function useTracing({ url }: OtlpReceiver, settings: Environment = {}): Environment {
  const all = {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '20',
    ...settings,
  };
  vi.unstubAllEnvs();
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  return all;
}

interface JsonAttribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

type Names<Name extends string> = Readonly<Record<Name, string>>;

type JsonSpan = Names<'name' | 'traceId' | 'spanId' | 'startTimeUnixNano' | 'endTimeUnixNano'> & {
  readonly parentSpanId?: string;
  /** 1 internal, 2 server. */
  readonly kind: number;
  readonly attributes: readonly JsonAttribute[];
  readonly status: { readonly code?: number };
  readonly links?: readonly Names<'traceId' | 'spanId'>[];
};

interface JsonRequest {
  readonly resourceSpans: readonly {
    readonly resource: Pick<JsonSpan, 'attributes'>;
    readonly scopeSpans: readonly { readonly spans: readonly JsonSpan[] }[];
  }[];
}

function readJsonSpans(text: string) {
  const { resourceSpans } = JSON.parse(text) as JsonRequest;
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ startTimeUnixNano, endTimeUnixNano, status, links = [], ...span }) => ({
        ...span,
        /** Empty without a parent. */
        parentSpanId: span.parentSpanId ?? '',
        durationMs: Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6,
        attributes: readAttributes(span.attributes),
        /** 0 unset, 2 error. */
        status: status.code ?? 0,
        links: links.map(({ traceId, spanId }) => ({ traceId, spanId })),
        resource: readAttributes(resource.attributes),
      })),
    ),
  );
}

function readAttributes(attributes: readonly JsonAttribute[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, boolValue, intValue, doubleValue } }) => [
      key,
      stringValue ?? boolValue ?? (intValue === undefined ? doubleValue : Number(intValue)),
    ]),
  );
}
