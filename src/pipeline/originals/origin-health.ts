import { formatReadFailure, MediaError } from '../../contract/errors.ts';
import type { Meter } from '../meter.ts';
import { AccessRefused, type Clock, type Log, StateMismatch } from '../ports.ts';
import type { Backend, SourceObserver } from './backend.ts';
import { discard, openContent } from './open-body.ts';

/** State of the origin; `reachable`: it responded recently, or did not fail since. */
export type OriginState = 'unknown' | 'reachable' | 'failing';

/** Maximum age of the last response at which a failure counts as one object's, not the origin's, in milliseconds. */
const RECENT_MS = 10_000;

/** Silence after which the origin is probed, in milliseconds. */
const SILENCE_MS = { reachable: 10_000, otherwise: 1_000 };

/** Interval of reports of a lasting failure, in milliseconds. */
const REPORT_AGAIN_AFTER_MS = 60_000;

/** A valid key without an original; a 404 is a response, too. */
const PROBE_KEY = 'avatars/0/darkroom-readiness';

/** Health of the origin, by its responses to requests, and to probes while there are no requests. */
export class OriginHealth {
  readonly #clock: Clock;
  #respondedMs: number | undefined;
  #failedMs: number | undefined;
  #isProbing = false;
  readonly #log: Log;
  readonly #storage: string;
  #reportedMs: number | undefined;

  /** @param storage description in the log, which reports the cause when failures begin, and each minute */
  constructor(clock: Clock, log: Log, storage: string) {
    this.#clock = clock;
    this.#log = log;
    this.#storage = storage;
  }

  get hasResponded(): boolean {
    return this.#respondedMs !== undefined;
  }

  get state(): OriginState {
    const [respondedMs, failedMs] = [this.#respondedMs, this.#failedMs];
    if (respondedMs === undefined) return failedMs === undefined ? 'unknown' : 'failing';
    const hasFailedSince = failedMs !== undefined && failedMs > respondedMs;
    const isOld = this.#clock.nowMs() - respondedMs > RECENT_MS;
    return hasFailedSince && isOld ? 'failing' : 'reachable';
  }

  /** Notes a response, which may be a 404. */
  noteResponse(): void {
    this.#respondedMs = this.#clock.nowMs();
    this.#reportedMs = undefined;
  }

  noteFailure(error: unknown): void {
    const cause = error instanceof MediaError ? error.cause : undefined;
    if (cause instanceof AccessRefused || cause instanceof StateMismatch) {
      this.noteResponse();
      return;
    }
    const nowMs = this.#clock.nowMs();
    this.#failedMs = nowMs;
    const isDue = nowMs - (this.#reportedMs ?? -Infinity) >= REPORT_AGAIN_AFTER_MS;
    if (this.state !== 'failing' || !isDue) return;
    this.#reportedMs = nowMs;
    const [storage, reason] = [this.#storage, formatReadFailure(error)];
    this.#log.error({ storage, reason: reason.slice(2) }, `${storage} cannot be read${reason}`);
  }

  /** Probes a silent origin in the background; the observer of the backend notes the response. */
  probe(storage: Backend): void {
    const lastOutcomeMs = Math.max(this.#respondedMs ?? -Infinity, this.#failedMs ?? -Infinity);
    const silenceMs = this.state === 'reachable' ? SILENCE_MS.reachable : SILENCE_MS.otherwise;
    if (this.#isProbing || this.#clock.nowMs() - lastOutcomeMs < silenceMs) return;
    this.#isProbing = true;
    const { signal } = new AbortController();
    openContent(storage, PROBE_KEY, { signal, isBuffered: true })
      .then((opened) => discard(storage, opened))
      .catch(() => undefined)
      .finally(() => {
        this.#isProbing = false;
      });
  }
}

/** Creates the observer that counts reads, and informs the health. */
export function createObserver(meter: Meter, health: OriginHealth): SourceObserver {
  return {
    noteReadBytes: (bytes) => meter.count('originReadBytes', 'all', bytes),
    noteBrokenBody: () => meter.count('originBrokenBodies', 'all'),
    noteOutcome: (outcome, error) => {
      meter.count('originReads', outcome);
      if (outcome === 'found' || outcome === 'missing') health.noteResponse();
      else if (outcome !== 'stopped') health.noteFailure(error);
    },
  };
}
