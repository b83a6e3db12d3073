import type { Context, Span, SpanStatusCode, Tracer } from '@opentelemetry/api';
import { type ErrorCode, errorRegistry, MediaError } from '../contract/errors.ts';
import type { CacheOutcome, StageTiming, TimedStage } from './cache-outcome.ts';
import type { Memory, Stage } from './meter.ts';
import type { Clock, Lane } from './ports.ts';
import { SiteFailure } from './site-failure.ts';

/**
 * What a trace shows of a request: the stages that are timed for all to see, and steps that only a trace shows:
 * the wait for the work of another request, a fetch from another site, what the header of an original says, a rendering
 * on its way to the store.
 */
export type SpanName = Stage | Step;
export type Step = 'join' | 'fetch' | 'facts' | 'write';

/** What can be noted of a stage: numbers and words of ours, never a key, a name or a secret. */
export type SpanDetails = Readonly<
  Partial<{
    /** Which of the memories was looked into, and whether there was anything. */
    'darkroom.memory': Memory;
    'darkroom.found': boolean;
    /** What the origin was asked for: which state the original is in, or all of it. */
    'darkroom.origin.part': 'state' | 'body';
    /** Another site has said that what was known of it still holds. */
    'darkroom.fetch.unchanged': boolean;
    'darkroom.lane': Lane;
    /** Of an original, or of what was made of it. */
    'darkroom.format': string;
    'darkroom.width': number;
    'darkroom.height': number;
    'darkroom.frames': number;
    /** Read, made or written. */
    'darkroom.bytes': number;
  }>
>;

/** A request in a trace, in the terms of OpenTelemetry's API; the package itself is loaded only with a tracer. */
export interface TracedRequest {
  readonly tracer: Tracer;
  readonly span: Span;
  /** Makes that span the parent of those that are begun with it. */
  readonly context: Context;
}

/** A stay in a stage. One of the `end`s is called, once, unless the stage turns out not to have been entered. */
export interface Visit extends Pick<StageSpan, 'note' | 'end'> {
  /** Adds the time spent to the stage's, and no more: of a hit, no trace shows the stages. */
  endUnseen(): void;
}

/** `SpanStatusCode.ERROR`, without the package. */
const ERROR: SpanStatusCode.ERROR = 2;

/** A part of a request's way in its trace; without a trace, nothing. One that is not ended is not sent. */
export class StageSpan {
  readonly #span: Span | undefined;

  constructor(span: Span | undefined) {
    this.#span = span;
  }

  note(details: SpanDetails): void {
    this.#span?.setAttributes(details);
  }

  /** @param error why it came to nothing; an error of the registry, an abort, or a bug of ours */
  end(error?: unknown): void {
    if (this.#span === undefined) return;
    if (error instanceof MediaError) {
      noteErrorCode(this.#span, error.code);
      const { cause } = error;
      if (cause instanceof SiteFailure) {
        this.#span.setAttribute('darkroom.fetch.failure', cause.reason);
      }
    } else if (error instanceof Error) {
      // A client that has left did nothing wrong.
      if (error.name === 'AbortError') this.#span.setAttribute('darkroom.aborted', true);
      else noteFailure(this.#span, error.name);
    }
    this.#span.end();
  }
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
    describe?: (result: Result) => SpanDetails,
  ): Promise<Result> {
    const visit = this.enter(stage);
    return endAfter(visit, async () => {
      const result = await work(visit);
      if (describe !== undefined) visit.note(describe(result));
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
      note: (details) => span.note(details),
      end: (error) => {
        endUnseen();
        span.end(error);
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
    work: (span: StageSpan) => Promise<Result>,
    joined?: RequestTrace,
  ): Promise<Result> {
    const span = this.begin(step, joined);
    return endAfter(span, () => work(span));
  }

  /** Begins what only a trace shows. */
  begin(name: SpanName, joined?: RequestTrace): StageSpan {
    if (this.#traced === undefined) return unseen;
    const { tracer, context } = this.#traced;
    const leader = joined === undefined ? undefined : joined.#traced;
    const links = leader === undefined ? [] : [{ context: leader.span.spanContext() }];
    return new StageSpan(tracer.startSpan(name, { links }, context));
  }

  /** Each stage entered so far, in order of the first visit's end. */
  get timings(): readonly StageTiming[] {
    return [...this.#durationsMs].map(([stage, durationMs]) => ({ stage, durationMs }));
  }
}

/** Hits are many, and most are not traced: one for all of them. */
const unseen = new StageSpan(undefined);

/** Ends a span, or a visit, with the work that it stands for. */
async function endAfter<Result>(
  span: Pick<StageSpan, 'end'>,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    const result = await work();
    span.end();
    return result;
  } catch (error) {
    span.end(error);
    throw error;
  }
}

function noteFailure(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: ERROR });
}
