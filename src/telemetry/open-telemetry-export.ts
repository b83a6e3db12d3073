import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { Log } from '../pipeline/ports.ts';

/** Where spans are sent, and how. */
export interface CollectorAccess {
  readonly url: string;
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly headers: Readonly<Record<string, string>>;
  /** For sending a batch, with all attempts at it. */
  readonly timeoutMs: number;
  readonly compression: 'none' | 'gzip';
}

/** Opens the way to a collector; of one that fails, the log is told. */
export function createExporter(access: CollectorAccess, log: Log): SpanExporter {
  const { url, protocol, headers, timeoutMs, compression } = access;
  // All that the packages would otherwise look for in the environment by themselves.
  const options = {
    url,
    headers: { ...headers },
    timeoutMillis: timeoutMs,
    compression: compression === 'gzip' ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE,
    httpAgentOptions: { keepAlive: true },
  };
  const exporter =
    protocol === 'http/json' ? new JsonExporter(options) : new ProtobufExporter(options);
  return new WatchedExporter(exporter, url, log);
}

/**
 * An exporter whose failures are told once, with their cause, and once more when it works again; not for each
 * batch.
 */
class WatchedExporter implements SpanExporter {
  readonly #inner: SpanExporter;
  readonly #url: string;
  readonly #log: Log;
  /** Since it failed. */
  #lostSpans = 0;

  constructor(inner: SpanExporter, url: string, log: Log) {
    this.#inner = inner;
    this.#url = url;
    this.#log = log;
  }

  export(spans: ReadableSpan[], tell: (result: ExportResult) => void): void {
    this.#inner.export(spans, (result) => {
      this.#note(result, spans.length);
      tell(result);
    });
  }

  forceFlush(): Promise<void> {
    return this.#inner.forceFlush?.() ?? Promise.resolve();
  }

  shutdown(): Promise<void> {
    return this.#inner.shutdown();
  }

  #note({ code, error }: ExportResult, count: number): void {
    const url = this.#url;
    const lostSpans = this.#lostSpans;
    if (code === ExportResultCode.SUCCESS) {
      this.#lostSpans = 0;
      if (lostSpans > 0) this.#log.info({ url, lostSpans }, 'traces are taken again');
      return;
    }
    this.#lostSpans += count;
    if (lostSpans > 0) return;
    this.#log.warn({ url, reason: reasonOf(error) }, 'traces cannot be sent; they are dropped');
  }
}

/** The words alone: what a collector answers may be long, and is nobody's error here. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason was given';
  const { message, name, cause } = error;
  const code = 'code' in error && !message.includes(String(error.code)) ? ` (${error.code})` : '';
  const because = cause instanceof Error ? `: ${reasonOf(cause)}` : '';
  return `${message === '' ? name : message}${code}${because}`;
}
