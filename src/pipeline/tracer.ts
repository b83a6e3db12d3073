import type { ErrorCode } from '../contract/errors.ts';
import type { MediaRequest } from '../contract/media-request.ts';
import type { ResourceName } from '../contract/resources.ts';
import type { CacheUse } from './cache-outcome.ts';
import type { Memory, Stage } from './meter.ts';
import type { Lane } from './ports.ts';

/**
 * What a trace shows of a request: the stages that are timed for all to see, and steps that nobody else tells
 * of: the wait for another one's work, what the header of an original says, a rendering on its way to the store.
 */
export type SpanName = Stage | Step;
export type Step = 'join' | 'facts' | 'write';

/** What can be told of a room. Numbers and words of ours, never a key, a name or a secret. */
export interface SpanDetails {
  /** Into which of the memories a look was taken, and whether there was anything. */
  readonly memory?: Memory;
  readonly isFound?: boolean;
  /** What the origin was asked for: which state the original is in, or all of it. */
  readonly part?: 'state' | 'body';
  /** The lane that a render stood in, and the one whose slot it got. */
  readonly lane?: Lane;
  readonly slot?: Lane;
  /** Of an original, or of what was made of it. */
  readonly format?: string;
  readonly widthPx?: number;
  readonly heightPx?: number;
  readonly frames?: number;
  /** Read, made or written. */
  readonly bytes?: number;
}

/** A stretch of a request's way. One that is not ended is never told of. */
export interface StageSpan {
  note(details: SpanDetails): void;
  /** @param error why it came to nothing; an error of the registry, an abort, or a bug of ours */
  end(error?: unknown): void;
}

/** A request, when it is over. */
export interface TracedResponse {
  readonly resource: ResourceName | 'none';
  /** `undefined` where nobody is left who could have got one. */
  readonly status: number | undefined;
  readonly code: ErrorCode | undefined;
  readonly cache: CacheUse;
  /** Of the body, as far as it was handed over to the system. */
  readonly bytes: number;
  /** Its `X-Request-Id`, where it has one. */
  readonly id: string | undefined;
  readonly media: MediaRequest | undefined;
}

/** A request in a trace: its sender's, where that was told, or one that begins with it. */
export interface RequestSpan {
  /** 32 hexadecimal digits (W3C Trace Context §3.2.2.3). */
  readonly traceId: string;
  /** Whether anybody will see it; where not, nothing of it needs to be told. */
  readonly isRecorded: boolean;
  /**
   * Begins a part of it.
   *
   * @param joined the request that does what this one waits for
   */
  begin(name: SpanName, joined?: RequestSpan): StageSpan;
  end(answer: TracedResponse): void;
}

/** A request, as far as a trace begins with it. */
export interface RequestHead {
  readonly method: string;
  /** Path and query as they came; of these, the path alone is told. */
  readonly target: string;
  readonly httpVersion: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Who shows the ways of requests to those who look for where the time goes. */
export interface Tracer {
  begin(head: RequestHead): RequestSpan;
  /** Sends what is left, but no longer than a time, in milliseconds; never throws. */
  close(maxWaitMs: number): Promise<void>;
}
