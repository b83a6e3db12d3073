import type { ErrorCode } from '../contract/errors.ts';
import type { Clock, Lane } from './ports.ts';

/** Stages in `Server-Timing` (contract §4). */
const timedStages = ['store', 'origin', 'queue', 'render'] as const;
export type TimedStage = (typeof timedStages)[number];

/** Stages in metrics and the log; the last one sends the body. */
export const stages = [...timedStages, 'send'] as const;
export type Stage = (typeof stages)[number];

/**
 * Stages in a trace. `join` waits for the work of another request, `fetch` contacts another site, `facts` reads a
 * header, and `write` stores a rendering.
 */
export type StageName = Stage | 'join' | 'fetch' | 'facts' | 'write';

/** Attributes of a stage's span: numbers and constant words, never keys or secrets. */
export interface StageDetails {
  memory?: 'results' | 'store';
  found?: boolean;
  originPart?: 'state' | 'body';
  /** Whether another site returned 304. */
  unchanged?: boolean;
  lane?: Lane;
  bytes?: number;
  format?: string;
  codec?: string;
  widthPx?: number;
  heightPx?: number;
  frames?: number;
  errorCode?: ErrorCode;
}

export interface StageTiming {
  readonly stage: TimedStage;
  readonly durationMs: number;
}

/** No cached result (`miss`), an outdated one (`stale`), or caches are not used, for passthrough (`bypass`). */
interface Forwarded {
  readonly kind: 'miss' | 'stale' | 'bypass';
  readonly collapsed?: boolean | undefined;
  /** Status of the origin's response if `Cache-Status` reports it; 304: the original is unchanged. */
  readonly originStatus?: number | undefined;
  readonly stored?: boolean | undefined;
  readonly detail?: OutcomeDetail | undefined;
}

/** The origin was not contacted, or did not respond. */
interface Hit {
  readonly kind: 'hit';
  readonly detail?: OutcomeDetail | undefined;
}

/** Source of a response: the result store, or a state before a failure of the origin (RFC 5861). */
export type OutcomeDetail = 'store' | 'stale-if-error';

/** Outcome in the vocabulary of RFC 9211. */
export type CacheOutcome = Hit | Forwarded;

/**
 * Outcomes for metrics and logs. `revalidated`: the origin confirmed a cached result; `collapsed`: another request's
 * work; `none`: rejected before the caches were used.
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

/** Marks an outcome that used another request's work; hits are never marked. */
export function markCollapsed(outcome: CacheOutcome, isJoined: boolean): CacheOutcome {
  return outcome.kind === 'hit' ? outcome : { ...outcome, collapsed: isJoined };
}

/** Returns the outcome of a cached result: its original is unchanged, or the origin fails. */
export function reuseOutcome(
  original: { readonly contactedOrigin: boolean; readonly failure?: unknown },
  detail?: 'store',
): CacheOutcome {
  const kind = original.contactedOrigin ? 'stale' : 'hit';
  if (original.failure !== undefined) return { kind, detail: 'stale-if-error' };
  return kind === 'hit' ? { kind, detail } : { kind, originStatus: 304, detail };
}

export interface TracedRequest {
  /** Begins a stage; the returned function ends it. @param leader request whose work the stage waits for */
  begin(
    stage: StageName,
    leader?: TracedRequest,
  ): (details?: Readonly<StageDetails>, error?: unknown) => void;
}

/** Stages of one request with their durations, also for error responses. */
export class RequestTrace {
  readonly #clock: Clock;
  readonly #traced: TracedRequest | undefined;
  readonly #timings: { readonly stage: TimedStage; durationMs: number }[] = [];

  constructor(clock: Clock, traced?: TracedRequest) {
    this.#clock = clock;
    this.#traced = traced;
  }

  /** Runs work as a stage of the request. @param joined request whose work this one waits for */
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

  /** Adds time to a stage. @param details attributes of its span; omit to create no span */
  add(stage: TimedStage, durationMs: number, details?: StageDetails): void {
    const known = this.#timings.find((timing) => timing.stage === stage);
    if (known === undefined) this.#timings.push({ stage, durationMs });
    else known.durationMs += durationMs;
    if (details !== undefined) this.#traced?.begin(stage)(details);
  }

  /** Forgets the stages so far, to hide them from the response. */
  restart(): void {
    this.#timings.length = 0;
  }

  /** Stages so far, in the order of their first ends. */
  get timings(): readonly StageTiming[] {
    return this.#timings;
  }
}
