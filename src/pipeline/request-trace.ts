import type { Context, Span, SpanStatusCode, Tracer } from '@opentelemetry/api';
import { type ErrorCode, errorRegistry, MediaError } from '../contract/errors.ts';
import type { CacheOutcome, StageTiming, TimedStage } from './cache-outcome.ts';
import type { Stage } from './meter.ts';
import type { Clock } from './ports.ts';
import { SiteFailure } from './site-failure.ts';

/**
 * Parts of a request in a trace: the stages that are timed for all to see, and steps that only a trace shows: the wait
 * for the work of another request, a fetch from another site, the facts of an original's header, a rendering on its way
 * to the store.
 */
export type SpanName = Stage | 'join' | 'fetch' | 'facts' | 'write';

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
 * Ends a part of a request's way in its trace; without a trace, does nothing. One that is not ended is not sent.
 *
 * @param error why it came to nothing; an error of the registry, an abort, or a bug of ours
 */
export function endSpan(span: Span | undefined, error?: unknown): void {
  if (span === undefined) return;
  if (error instanceof MediaError) {
    noteErrorCode(span, error.code);
    const { cause } = error;
    if (cause instanceof SiteFailure) span.setAttribute('darkroom.fetch.failure', cause.reason);
  } else if (error instanceof Error) {
    // A client that has left did nothing wrong.
    if (error.name === 'AbortError') span.setAttribute('darkroom.aborted', true);
    else noteFailure(span, error.name);
  }
  span.end();
}

/** Notes an error response: one that is the client's fault is a response like others, as in OpenTelemetry's conventions. */
export function noteErrorCode(span: Span, code: ErrorCode): void {
  span.setAttribute('darkroom.error.code', code);
  if (errorRegistry[code].status >= 500) noteFailure(span, code);
}

/**
 * The way of one request: the stages it entered with the time spent in each, and
 * what the cache had to say. Kept apart from the response, since an error has it as well.
 */
export class RequestTrace {
  readonly #clock: Clock;
  readonly #traced: TracedRequest | undefined;
  readonly #timings: { readonly stage: TimedStage; durationMs: number }[] = [];
  outcome: CacheOutcome | undefined;

  /** @param traced shows the same stages in a trace; `undefined` where the request is not traced */
  constructor(clock: Clock, traced?: TracedRequest) {
    this.#clock = clock;
    this.#traced = traced?.span.isRecording() ? traced : undefined;
  }

  /**
   * Does some work as a stage or step of the request's way; a stage's time is added to its others.
   *
   * @param work gets its part in the trace, if there is one, for numbers and words of ours: never a key, name or secret
   * @param joined the request whose work is waited for
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
      if (isTimed(name)) this.add(name, this.#clock.nowMs() - enteredMs);
      endSpan(span, failure);
    }
  }

  /** Adds time to a stage, which a trace does not show. */
  add(stage: TimedStage, durationMs: number): void {
    const known = this.#timings.find((timing) => timing.stage === stage);
    if (known === undefined) this.#timings.push({ stage, durationMs });
    else known.durationMs += durationMs;
  }

  /** Begins a part of the trace; one that is not ended is not sent. */
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

function isTimed(name: SpanName): name is TimedStage {
  return name === 'store' || name === 'origin' || name === 'queue' || name === 'render';
}

function noteFailure(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: ERROR });
}
