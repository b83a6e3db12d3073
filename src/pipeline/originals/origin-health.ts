import { MediaError } from '../../contract/errors.ts';
import { withDeadline } from '../abort.ts';
import { AccessRefused, type Clock, type Origin } from '../ports.ts';

/**
 * What is known of the origin: nothing yet; it has responded, lately or with nothing to the contrary since; or
 * it fails, and has not responded for a while.
 */
export type OriginState = 'unknown' | 'reachable' | 'failing';

/** How old a response may be for failures after it to be failures of one object, in milliseconds. */
const LATELY_MS = 10_000;

/** How long nothing must have been heard from the origin before it is asked for this, in milliseconds. */
const SILENCE_MS = { reachable: 10_000, otherwise: 1_000 };

/** How often a failure that lasts is reported, in milliseconds. */
const REPORT_AGAIN_AFTER_MS = 60_000;

/** A key of the right form that no original has: that it is missing is a response, too. */
const PROBE_KEY = 'avatars/0/darkroom-readiness';

/** What the origin's responses say of it: those to requests, and those to probes in quiet times. */
export class OriginHealth {
  readonly #clock: Clock;
  #respondedMs: number | undefined;
  #failedMs: number | undefined;
  #isProbing = false;
  readonly #report: (error: unknown) => void;
  #reportedMs: number | undefined;

  /** @param report gets the cause as soon as the origin is taken to fail, and once a minute while it does */
  constructor(clock: Clock, report: (error: unknown) => void) {
    this.#clock = clock;
    this.#report = report;
  }

  get hasResponded(): boolean {
    return this.#respondedMs !== undefined;
  }

  get state(): OriginState {
    const [respondedMs, failedMs] = [this.#respondedMs, this.#failedMs];
    if (respondedMs === undefined) return failedMs === undefined ? 'unknown' : 'failing';
    const hasFailedSince = failedMs !== undefined && failedMs > respondedMs;
    const isOld = this.#clock.nowMs() - respondedMs > LATELY_MS;
    return hasFailedSince && isOld ? 'failing' : 'reachable';
  }

  /** It has responded, be it that there is no such object. */
  noteResponse(): void {
    this.#respondedMs = this.#clock.nowMs();
    this.#reportedMs = undefined;
  }

  noteFailure(error: unknown): void {
    if (error instanceof MediaError && error.cause instanceof AccessRefused) {
      this.noteResponse();
      return;
    }
    const nowMs = this.#clock.nowMs();
    this.#failedMs = nowMs;
    const isDue = nowMs - (this.#reportedMs ?? -Infinity) >= REPORT_AGAIN_AFTER_MS;
    if (this.state !== 'failing' || !isDue) return;
    this.#reportedMs = nowMs;
    this.#report(error);
  }

  /**
   * Asks the origin, in the background, if nothing was heard from it for a while.
   *
   * @param origin whose responses are noted here
   * @param timeoutMs time for its response
   */
  probe(origin: Origin, timeoutMs: number): void {
    const heardMs = Math.max(this.#respondedMs ?? -Infinity, this.#failedMs ?? -Infinity);
    const silenceMs = this.state === 'reachable' ? SILENCE_MS.reachable : SILENCE_MS.otherwise;
    if (this.#isProbing || this.#clock.nowMs() - heardMs < silenceMs) return;
    this.#isProbing = true;
    const onTimeout = (): MediaError => new MediaError('ORIGIN_TIMEOUT');
    withDeadline(timeoutMs, undefined, onTimeout, async (signal) => {
      const { body } = await origin.read(PROBE_KEY, { signal });
      body.on('error', () => undefined);
      body.destroy();
    })
      // The watched origin has noted it.
      .catch(() => undefined)
      .finally(() => {
        this.#isProbing = false;
      });
  }
}
