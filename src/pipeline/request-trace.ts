import type { Context, Span, SpanStatusCode, Tracer } from '@opentelemetry/api';
import { type ErrorCode, errorRegistry, MediaError } from '../contract/errors.ts';
import type { Clock } from './ports.ts';
import { SiteFailure } from './site-failure.ts';

/** Stages of the pipeline whose time is in `Server-Timing` (contract §4). */
const timedStages = ['store', 'origin', 'queue', 'render'] as const;
export type TimedStage = (typeof timedStages)[number];

/** Stages of a request that metrics and the log show; the last one sends the body. */
export const stages = [...timedStages, 'send'] as const;
export type Stage = (typeof stages)[number];

/**
 * Parts of a request in a trace: its stages, and steps that only a trace shows: the wait for the work of another
 * request, a fetch from another site, the facts of an original's header, a rendering on its way to the store.
 */
export type SpanName = Stage | 'join' | 'fetch' | 'facts' | 'write';

export interface StageTiming {
  readonly stage: TimedStage;
  readonly durationMs: number;
}

/** A cached result was missing (`miss`) or too old (`stale`); or the caches are not asked, for a streamed original. */
interface Forwarded {
  readonly kind: 'miss' | 'stale' | 'bypass';
  /** Whether the request joined another one's work instead of starting its own. */
  readonly collapsed?: boolean | undefined;
  /** HTTP status of the origin's response, where the header reports it (304: the original is unchanged). */
  readonly originStatus?: number | undefined;
  readonly stored?: boolean | undefined;
  readonly detail?: OutcomeDetail | undefined;
}

/** The origin was not asked for this response, or could not be reached. */
interface Hit {
  readonly kind: 'hit';
  readonly detail?: OutcomeDetail | undefined;
}

/** Detail of a response: it came from the persistent store, or it was known before the origin failed (RFC 5861). */
export type OutcomeDetail = 'store' | 'stale-if-error';

/** Outcome of the caches for a request, in the vocabulary of RFC 9211. */
export type CacheOutcome = Hit | Forwarded;

/**
 * Outcomes in a word, for counting. `memory`, `store`: a hit in either; `revalidated`: the origin confirmed a known
 * result; `stale-if-error`: a known result while the origin fails; `collapsed`: the work of another request; `miss`,
 * `stale`: no result, or an outdated one; `bypass`: never kept; `none`: rejected before the caches were asked.
 */
export const cacheUses = [
  'memory',
  'store',
  'revalidated',
  'stale-if-error',
  'collapsed',
  'miss',
  'stale',
  'bypass',
  'none',
] as const;
export type CacheUse = (typeof cacheUses)[number];

/** Returns where a response came from, in a word. */
export function cacheUseOf(outcome: CacheOutcome | undefined): CacheUse {
  if (outcome === undefined) return 'none';
  if (outcome.detail !== undefined) return outcome.detail;
  if (outcome.kind === 'hit') return 'memory';
  if (outcome.collapsed) return 'collapsed';
  return outcome.originStatus === 304 ? 'revalidated' : outcome.kind;
}

/** A request in a trace, in the terms of OpenTelemetry's API; the package itself is loaded only with a tracer. */
export interface TracedRequest {
  readonly tracer: Tracer;
  readonly span: Span;
  /** Makes that span the parent of those that are begun with it. */
  readonly context: Context;
}

/** `SpanStatusCode.ERROR`, without the package. */
const ERROR: SpanStatusCode.ERROR = 2;

/**
 * Ends a part of a trace, which is not sent before; does nothing without a trace.
 *
 * @param error reason why the part failed: an error of the registry, an abort, or a bug of ours
 */
export function endSpan(span: Span | undefined, error?: unknown): void {
  if (span === undefined) return;
  if (error instanceof MediaError) {
    noteErrorCode(span, error.code);
    const { cause } = error;
    if (cause instanceof SiteFailure)
      span.setAttribute('darkroom.fetch.failure', cause.details.reason);
  } else if (error instanceof Error) {
    // A client that has left did nothing wrong.
    if (error.name === 'AbortError') span.setAttribute('darkroom.aborted', true);
    else noteFailure(span, error.name);
  }
  span.end();
}

/** Adds an error response to a span; one that is the client's fault is no error, by OpenTelemetry's conventions. */
export function noteErrorCode(span: Span, code: ErrorCode): void {
  span.setAttribute('darkroom.error.code', code);
  if (errorRegistry[code].status >= 500) noteFailure(span, code);
}

/** Stages of one request with the time spent in each, and the outcome of the caches; error responses have both as well. */
export class RequestTrace {
  readonly #clock: Clock;
  readonly #traced: TracedRequest | undefined;
  readonly #timings: { readonly stage: TimedStage; durationMs: number }[] = [];
  /** `undefined` until the caches are asked. */
  outcome: CacheOutcome | undefined;

  /** @param traced shows the same stages in a trace; `undefined` where the request is not traced */
  constructor(clock: Clock, traced?: TracedRequest) {
    this.#clock = clock;
    this.#traced = traced?.span.isRecording() ? traced : undefined;
  }

  /**
   * Runs work as a stage or step of the request, and adds its time to the stage's.
   *
   * @param work gets its span, if the request is traced, for attributes: numbers and words of ours, never a key or secret
   * @param joined the request whose work this one waits for
   */
  async stage<Result>(
    name: SpanName,
    work: (span: Span | undefined) => Promise<Result>,
    joined?: RequestTrace,
  ): Promise<Result> {
    const enteredMs = this.#clock.nowMs();
    const span = this.begin(name, joined);
    let failure: unknown;
    try {
      return await work(span);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      const timed = timedStages.find((stage) => stage === name);
      if (timed !== undefined) this.add(timed, this.#clock.nowMs() - enteredMs);
      endSpan(span, failure);
    }
  }

  /** Adds time to a stage without a span. */
  add(stage: TimedStage, durationMs: number): void {
    const known = this.#timings.find((timing) => timing.stage === stage);
    if (known === undefined) this.#timings.push({ stage, durationMs });
    else known.durationMs += durationMs;
  }

  /** Forgets the stages and the outcome so far: the response shows those of what comes now. */
  restart(): void {
    this.#timings.length = 0;
    this.outcome = undefined;
  }

  /** Begins a part of the trace, which is sent once it is ended. */
  begin(name: SpanName, joined?: RequestTrace): Span | undefined {
    if (this.#traced === undefined) return undefined;
    const { tracer, context } = this.#traced;
    const leader = joined === undefined ? undefined : joined.#traced;
    const links = leader === undefined ? [] : [{ context: leader.span.spanContext() }];
    return tracer.startSpan(name, { links }, context);
  }

  /** Each stage entered so far, in order of the first visit's end. */
  get timings(): readonly StageTiming[] {
    return this.#timings;
  }
}

function noteFailure(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: ERROR });
}
