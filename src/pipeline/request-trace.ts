import type { Attributes, Context, Span, SpanStatusCode, Tracer } from '@opentelemetry/api';
import { type ErrorCode, errorRegistry, MediaError } from '../contract/errors.ts';
import type { CacheOutcome, StageTiming, TimedStage } from './cache-outcome.ts';
import type { Stage } from './meter.ts';
import type { Clock } from './ports.ts';
import { SiteFailure } from './site-failure.ts';

/**
 * What a trace shows of a request: the stages that are timed for all to see, and steps that only a trace shows:
 * the wait for the work of another request, a fetch from another site, what the header of an original says, a rendering
 * on its way to the store.
 */
export type SpanName = Stage | Step;
export type Step = 'join' | 'fetch' | 'facts' | 'write';

/** A request in a trace, in the terms of OpenTelemetry's API; the package itself is loaded only with a tracer. */
export interface TracedRequest {
  readonly tracer: Tracer;
  readonly span: Span;
  /** Makes that span the parent of those that are begun with it. */
  readonly context: Context;
}

/** A stay in a stage. One of the `end`s is called, once, unless the stage turns out not to have been entered. */
export interface Visit {
  /** Its part in the trace, if there is one: gets numbers and words of ours, never a key, a name or a secret. */
  readonly span: Span | undefined;
  /** @param error why it came to nothing */
  readonly end: (error?: unknown) => void;
  /** Adds the time spent to the stage's, and no more: of a hit, no trace shows the stages. */
  readonly endUnseen: () => void;
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
 * What became of one request on its way: the stages it entered with the time spent in each, and
 * what the cache had to say. Kept apart from the response, since an error has it as well.
 */
export class RequestTrace {
  readonly #clock: Clock;
  readonly #traced: TracedRequest | undefined;
  readonly #durationsMs = new Map<TimedStage, number>();
  outcome: CacheOutcome | undefined;

  /** @param traced shows the same stages in a trace; `undefined` where the request is not traced */
  constructor(clock: Clock, traced?: TracedRequest) {
    this.#clock = clock;
    this.#traced = traced?.span.isRecording() ? traced : undefined;
  }

  /**
   * Does some work in a stage, and adds its time to the stage's.
   *
   * @param describe what to note of its result
   */
  async time<Result>(
    stage: TimedStage,
    work: (visit: Visit) => Promise<Result>,
    describe?: (result: Result) => Attributes,
  ): Promise<Result> {
    const visit = this.enter(stage);
    return endAfter(visit.end, async () => {
      const result = await work(visit);
      if (describe !== undefined) visit.span?.setAttributes(describe(result));
      return result;
    });
  }

  enter(stage: TimedStage): Visit {
    const enteredMs = this.#clock.nowMs();
    const span = this.begin(stage);
    const endUnseen = (): void => {
      const spentMs = this.#clock.nowMs() - enteredMs;
      this.#durationsMs.set(stage, (this.#durationsMs.get(stage) ?? 0) + spentMs);
    };
    return {
      span,
      end: (error) => {
        endUnseen();
        endSpan(span, error);
      },
      endUnseen,
    };
  }

  /**
   * Does some work that is not timed for all to see, but shown in a trace.
   *
   * @param joined the request whose work is waited for
   */
  async show<Result>(
    step: Step,
    work: (span: Span | undefined) => Promise<Result>,
    joined?: RequestTrace,
  ): Promise<Result> {
    const span = this.begin(step, joined);
    return endAfter(
      (error) => endSpan(span, error),
      () => work(span),
    );
  }

  /** Begins what only a trace shows. */
  begin(name: SpanName, joined?: RequestTrace): Span | undefined {
    if (this.#traced === undefined) return undefined;
    const { tracer, context } = this.#traced;
    const leader = joined === undefined ? undefined : joined.#traced;
    const links = leader === undefined ? [] : [{ context: leader.span.spanContext() }];
    return tracer.startSpan(name, { links }, context);
  }

  /** Each stage entered so far, in order of the first visit's end. */
  get timings(): readonly StageTiming[] {
    return [...this.#durationsMs].map(([stage, durationMs]) => ({ stage, durationMs }));
  }
}

/** Calls `end` with what has become of the work. */
async function endAfter<Result>(
  end: (error?: unknown) => void,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    const result = await work();
    end();
    return result;
  } catch (error) {
    end(error);
    throw error;
  }
}

function noteFailure(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: ERROR });
}
