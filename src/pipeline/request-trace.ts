import type { ErrorCode } from '../contract/errors.ts';
import type { Clock, Lane } from './ports.ts';

/** Stages of the pipeline whose time is in `Server-Timing` (contract §4). */
const timedStages = ['store', 'origin', 'queue', 'render'] as const;
export type TimedStage = (typeof timedStages)[number];

/** Stages of a request that metrics and the log show; the last one sends the body. */
export const stages = [...timedStages, 'send'] as const;
export type Stage = (typeof stages)[number];

/**
 * Stages in a trace: those above, and steps that are not timed: the wait for the work of another request, a fetch from
 * another site, reading the facts of an original, and writing a rendering into the store.
 */
export type StageName = Stage | 'join' | 'fetch' | 'facts' | 'write';

/** Details of a stage for a trace: numbers and constant words, never a key or a secret. */
export interface StageDetails {
  memory?: 'results' | 'store';
  found?: boolean;
  originPart?: 'state' | 'body';
  /** Whether another site has confirmed the known state. */
  unchanged?: boolean;
  lane?: Lane;
  bytes?: number;
  format?: string;
  codec?: string;
  widthPx?: number;
  heightPx?: number;
  frames?: number;
  /** Code of an error that the stage does not throw. */
  errorCode?: ErrorCode;
}

export interface StageTiming {
  readonly stage: TimedStage;
  readonly durationMs: number;
}

/** A cached result was missing (`miss`) or too old (`stale`), or the caches were not used, for a streamed original. */
interface Forwarded {
  readonly kind: 'miss' | 'stale' | 'bypass';
  /** Whether the request joined another one's work instead of starting its own. */
  readonly collapsed?: boolean | undefined;
  /** HTTP status of the origin's response, if the header reports it (304: the original is unchanged). */
  readonly originStatus?: number | undefined;
  readonly stored?: boolean | undefined;
  readonly detail?: OutcomeDetail | undefined;
}

/** The origin was not contacted for this response, or did not respond. */
interface Hit {
  readonly kind: 'hit';
  readonly detail?: OutcomeDetail | undefined;
}

/** Detail of a response: from the persistent store, or from before a failure of the origin (RFC 5861). */
export type OutcomeDetail = 'store' | 'stale-if-error';

/** Outcome of the caches for a request, in the vocabulary of RFC 9211. */
export type CacheOutcome = Hit | Forwarded;

/**
 * Outcomes for counting. `memory`, `store`: a hit in either; `revalidated`: the origin confirmed a known result;
 * `stale-if-error`: a known result while the origin fails; `collapsed`: the work of another request; `miss`, `stale`: no
 * result, or an outdated one; `bypass`: never cached; `none`: rejected before the caches were used.
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

export function cacheUseOf(outcome: CacheOutcome | undefined): CacheUse {
  if (outcome === undefined) return 'none';
  if (outcome.detail !== undefined) return outcome.detail;
  if (outcome.kind === 'hit') return 'memory';
  if (outcome.collapsed) return 'collapsed';
  return outcome.originStatus === 304 ? 'revalidated' : outcome.kind;
}

/** Adds to an outcome whether the request joined another one; a hit joins none. */
export function markCollapsed(outcome: CacheOutcome, isJoined: boolean): CacheOutcome {
  return outcome.kind === 'hit' ? outcome : { ...outcome, collapsed: isJoined };
}

/** Returns the outcome of an existing result: its original is unchanged, or the origin fails. */
export function reuseOutcome(
  original: { readonly contactedOrigin: boolean; readonly failure?: unknown },
  detail?: 'store',
): CacheOutcome {
  const kind = original.contactedOrigin ? 'stale' : 'hit';
  if (original.failure !== undefined) return { kind, detail: 'stale-if-error' };
  return kind === 'hit' ? { kind, detail } : { kind, originStatus: 304, detail };
}

/** Trace of one request. */
export interface TracedRequest {
  /**
   * Begins a stage. The returned function ends it, with the error that it throws, if any.
   *
   * @param leader request for whose work the stage waits
   */
  begin(
    stage: StageName,
    leader?: TracedRequest,
  ): (details?: Readonly<StageDetails>, error?: unknown) => void;
}

/** Stages of one request with the time spent in each; error responses show them as well. */
export class RequestTrace {
  readonly #clock: Clock;
  readonly #traced: TracedRequest | undefined;
  readonly #timings: { readonly stage: TimedStage; durationMs: number }[] = [];

  /** @param traced receives the same stages; omit to trace nothing */
  constructor(clock: Clock, traced?: TracedRequest) {
    this.#clock = clock;
    this.#traced = traced;
  }

  /**
   * Runs work as a stage of the request, and adds its time to the stage.
   *
   * @param work may fill in details for a trace
   * @param joined request for whose work this one waits
   */
  async stage<Result>(
    name: StageName,
    work: (details: StageDetails) => Promise<Result>,
    joined?: RequestTrace,
  ): Promise<Result> {
    const enteredMs = this.#clock.nowMs();
    const leader = joined === undefined ? undefined : joined.#traced;
    const end = this.#traced?.begin(name, leader);
    const details: StageDetails = {};
    let failure: unknown;
    try {
      return await work(details);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      const timed = timedStages.find((stage) => stage === name);
      if (timed !== undefined) this.add(timed, this.#clock.nowMs() - enteredMs);
      end?.(details, failure);
    }
  }

  /**
   * Adds time to a stage.
   *
   * @param details of the stage in a trace; omit to hide the stage
   */
  add(stage: TimedStage, durationMs: number, details?: StageDetails): void {
    const known = this.#timings.find((timing) => timing.stage === stage);
    if (known === undefined) this.#timings.push({ stage, durationMs });
    else known.durationMs += durationMs;
    if (details !== undefined) this.#traced?.begin(stage)(details);
  }

  /** Forgets the stages so far, which the response must not show. */
  restart(): void {
    this.#timings.length = 0;
  }

  /** Stages so far, in the order in which they first ended. */
  get timings(): readonly StageTiming[] {
    return this.#timings;
  }
}
