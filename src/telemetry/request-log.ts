import type { ErrorCode } from '../contract/errors.ts';
import type { SignatureVerdict } from '../contract/signing/attachment-signature.ts';
import type { CacheUse } from '../pipeline/cache-outcome.ts';
import type { ResponseClass, Stage } from '../pipeline/meter.ts';

/** A line of the log on a request that is over. */
export interface RequestLine {
  readonly id: string;
  readonly method: string;
  readonly resource: ResponseClass['resource'];
  /**
   * The canonical request, the same for all URLs that ask for the same; as it came where it is none, but for what in it
   * permits. Of an upload, its path without the query.
   */
  readonly asset: string;
  /** Host of external media. */
  readonly host?: string | undefined;
  /** Verdict on the URL of an attachment that has to be signed. */
  readonly signature?: SignatureVerdict;
  /** 499 where the client has gone before there was a response. */
  readonly status: number;
  readonly code?: ErrorCode;
  readonly cache: CacheUse;
  /** Bytes of the body, as far as it was handed over to the system. */
  readonly bytes: number;
  /** Bytes that have come of an upload's body. */
  readonly receivedBytes?: number;
  /** From the request's head to the end of its response. */
  readonly durationMs: number;
  readonly stagesMs: Readonly<Partial<Record<Stage, number>>>;
  /** Its address. */
  readonly client: string;
  /** Where requests are traced: 32 hexadecimal digits, the same for all who took part in it. */
  readonly traceId?: string;
}

/**
 * Where a line for each request goes, such as pino: at `debug` for hits in memory, at `info` for everything else.
 * There may be tens of thousands of hits a second; a line for each would cost more than the responses, and the
 * counters say as much.
 */
export interface RequestLog {
  isLevelEnabled(level: 'debug' | 'info'): boolean;
  debug(line: RequestLine, message: string): void;
  info(line: RequestLine, message: string): void;
}

/** To the microsecond: more digits would only be noise. */
export function roundMs(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000;
}
