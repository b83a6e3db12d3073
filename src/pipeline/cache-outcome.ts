/** Outcomes of the caches and stages for one request, for the headers that report them. */

/** A stage of the pipeline whose time is in `Server-Timing` (contract §4). */
export type TimedStage = 'store' | 'origin' | 'queue' | 'render';

/** Time one request spent in one stage. */
export interface StageTiming {
  readonly stage: TimedStage;
  readonly durationMs: number;
}

/** The origin's part in a response. */
interface Forwarded {
  /** Whether the request joined another one's work instead of starting its own. */
  readonly collapsed?: boolean | undefined;
  /** HTTP status of the origin's response, where it is worth telling (304: still the same). */
  readonly originStatus?: number | undefined;
}

/** A result was looked for and could not be used: absent (`miss`) or too old (`stale`). */
interface Unfit extends Forwarded {
  readonly kind: 'miss' | 'stale';
  readonly stored?: boolean | undefined;
  readonly detail?: OutcomeDetail | undefined;
}

/** The caches were never asked, nor will they keep the response: a streamed original. */
interface Bypass extends Forwarded {
  readonly kind: 'bypass';
}

/** The origin was not asked, or could not be reached, for this response. */
interface Hit {
  readonly kind: 'hit';
  readonly detail?: OutcomeDetail | undefined;
}

/**
 * Worth telling of a response: it came from the persistent store; or the origin has failed, and it is what
 * was known before (RFC 5861).
 */
export type OutcomeDetail = 'store' | 'stale-if-error';

/** Outcome of the caches for a request, in the vocabulary of RFC 9211. */
export type CacheOutcome = Hit | Unfit | Bypass;

/**
 * The same in a word, for counting: a hit in memory; one in the store; known before, and the origin says that
 * it still holds; known before, while the origin fails; the work of another request; nothing known, or nothing that is
 * still right; never kept; no word, since the request was refused before the caches were asked.
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

/** Where a response came from, in a word. */
export function cacheUseOf(outcome: CacheOutcome | undefined): CacheUse {
  if (outcome === undefined) return 'none';
  if (outcome.kind === 'bypass') return 'bypass';
  if (outcome.detail !== undefined) return outcome.detail;
  if (outcome.kind === 'hit') return 'memory';
  if (outcome.collapsed) return 'collapsed';
  return outcome.originStatus === 304 ? 'revalidated' : outcome.kind;
}
