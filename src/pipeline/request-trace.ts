import type { CacheOutcome, StageTiming, TimedStage } from './cache-outcome.ts';
import type { Clock } from './ports.ts';
import type { RequestSpan, SpanDetails, SpanName, StageSpan, Step } from './tracer.ts';

/** A stay in a room. One of the `leave`s is to be called, once, unless the room turns out not to have been entered. */
export interface Visit {
  /** Tells of the room, to whoever follows the request's trace. */
  note(details: SpanDetails): void;
  /** Adds the time spent to the room's. */
  leave(error?: unknown): void;
  /** The same where it is no news: of a hit, no trace shows the rooms. */
  leaveUnseen(): void;
}

const unseen: StageSpan = { note: () => undefined, end: () => undefined };

/**
 * What became of one request on its way: the rooms it entered with the time spent in each, and
 * what the cache had to say. Kept apart from the answer, since an error has it as well.
 */
export class RequestTrace {
  readonly #clock: Clock;
  readonly #span: RequestSpan | undefined;
  readonly #durationsMs = new Map<TimedStage, number>();
  outcome: CacheOutcome | undefined;

  /** @param span shows the same rooms to whoever traces requests; `undefined` where nobody does */
  constructor(clock: Clock, span?: RequestSpan) {
    this.#clock = clock;
    this.#span = span?.isRecorded ? span : undefined;
  }

  /**
   * Does some work in a room, and adds its time to the room's.
   *
   * @param describe what to tell of its result
   */
  async time<Result>(
    room: TimedStage,
    work: (visit: Visit) => Promise<Result>,
    describe?: (result: Result) => SpanDetails,
  ): Promise<Result> {
    const visit = this.enter(room);
    try {
      const result = await work(visit);
      if (describe !== undefined) visit.note(describe(result));
      visit.leave();
      return result;
    } catch (error) {
      visit.leave(error);
      throw error;
    }
  }

  /** Enters a room. */
  enter(room: TimedStage): Visit {
    const enteredMs = this.#clock.nowMs();
    const span = this.begin(room);
    const leaveUnseen = (): void => {
      const spentMs = this.#clock.nowMs() - enteredMs;
      this.#durationsMs.set(room, (this.#durationsMs.get(room) ?? 0) + spentMs);
    };
    return {
      note: (details) => span.note(details),
      leave: (error) => {
        leaveUnseen();
        span.end(error);
      },
      leaveUnseen,
    };
  }

  /**
   * Does some work that is not timed for all to see, but shown to whoever traces requests.
   *
   * @param joined the request whose work is waited for
   */
  async show<Result>(
    step: Step,
    work: (span: StageSpan) => Promise<Result>,
    joined?: RequestTrace,
  ): Promise<Result> {
    const span = this.begin(step, joined);
    try {
      const result = await work(span);
      span.end();
      return result;
    } catch (error) {
      span.end(error);
      throw error;
    }
  }

  /** Begins what only a trace shows. */
  begin(name: SpanName, joined?: RequestTrace): StageSpan {
    const leader = joined === undefined ? undefined : joined.#span;
    return this.#span?.begin(name, leader) ?? unseen;
  }

  /** Each room entered so far, in order of the first visit's end. */
  get timings(): readonly StageTiming[] {
    return [...this.#durationsMs].map(([room, durationMs]) => ({ room, durationMs }));
  }
}
