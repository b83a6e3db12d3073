import type { ErrorCode } from '../contract/errors.ts';
import type { ResourceName } from '../contract/resources.ts';
import type { CacheUse } from '../pipeline/cache-outcome.ts';
import type { Stage } from '../pipeline/meter.ts';

/** What is told of a request when it is over. */
export interface RequestLine {
  readonly id: string;
  readonly method: string;
  readonly resource: ResourceName | 'none';
  /** The canonical request, the same for all URLs that ask for the same; as it came where it is none. */
  readonly asset: string;
  /** 499 where the client has gone before there was an answer. */
  readonly status: number;
  readonly code?: ErrorCode;
  readonly cache: CacheUse;
  /** Of the body, as far as it was handed over to the system. */
  readonly bytes: number;
  /** From the request's head to the end of its answer. */
  readonly durationMs: number;
  readonly stagesMs: Readonly<Partial<Record<Stage, number>>>;
  /** Its address. */
  readonly client: string;
  /** Where requests are traced: 32 hexadecimal digits, the same for all who took part in it. */
  readonly traceId?: string;
}

/** Where a line for each request goes. */
export interface RequestLog {
  /** Which requests it wants to hear of: hits in memory are most of them, and the least news. */
  readonly scope: 'none' | 'without hits' | 'all';
  tell(line: RequestLine, isPlainHit: boolean): void;
}

/** Longest target that is told of a request that is none, in characters. */
const MAX_TARGET_LENGTH = 200;

/** A request target that could not be read, cut to what a line has room for. */
export function shortenTarget(target: string): string {
  return target.length <= MAX_TARGET_LENGTH ? target : `${target.slice(0, MAX_TARGET_LENGTH)}…`;
}

/** To the microsecond: more digits would only be noise. */
export function roundMs(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000;
}
