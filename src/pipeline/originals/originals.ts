import { MediaError } from '../../contract/errors.ts';
import type { Meter } from '../meter.ts';
import type { Clock, KeptOriginal, OriginalCache } from '../ports.ts';
import { SingleFlight } from '../single-flight.ts';
import {
  type FoundOriginal,
  findByOpening,
  findByPrefix,
  findLater,
  type HeldOriginal,
  type OriginalSource,
} from './found-original.ts';
import type { OriginalIdentity, OriginalVersions } from './freshness.ts';

/** What originals are found with. */
export interface OriginalsParts {
  readonly source: OriginalSource;
  readonly versions: OriginalVersions;
  /** Those that were read lately. */
  readonly cache: OriginalCache;
  readonly clock: Clock;
  readonly meter?: Pick<Meter, 'lookUps'>;
}

/**
 * How much to ask of the origin at first: the whole; enough to know an animation by; or only whether
 * it is what it was, since its bytes may not be needed.
 */
export type Approach = 'whole' | 'first frames' | 'identity';

/** An original that is there, and whether the origin was asked for it just now. */
export interface SeenOriginal extends FoundOriginal {
  readonly wasAsked: boolean;
}

/** An original for all who need it at the same time. */
export interface OriginalWork {
  /** @throws MediaError of the origin */
  readonly found: Promise<SeenOriginal>;
  /**
   * Reads its bytes, once for all.
   *
   * @throws MediaError as `FoundOriginal.hold` does, and what `judge` throws
   */
  readonly hold: (scruples: Scruples) => Promise<HeldOriginal>;
}

/** What somebody has against reading a whole original. */
export interface Scruples {
  /** Whether its first frames are to be read before the rest. */
  readonly isHesitant: boolean;
  /** Is shown the first bytes, where they are all that was read so far; may throw. */
  readonly judge: (prefix: Uint8Array) => void;
  /** Is called if bytes are awaited from the origin, whether or not they come. */
  readonly noteRead: () => void;
}

/** An original on its way into memory, for all who wait for it. */
interface Holding {
  readonly original: Promise<HeldOriginal>;
  /** From the origin; or else it was in memory already. */
  readonly isRead: boolean;
}

/** How old work on an original may be for somebody to join it, in milliseconds. */
const MAX_FLIGHT_AGE_MS = 5_000;

/** Enough for the first frames of an animation, in bytes. */
const FIRST_FRAMES_BYTES = 256 * 1024;

/** No origin answers a cheaper question rightly: of a missing object's HEAD, S3 does not say why. */
const IDENTITY_BYTES = 1;

/**
 * Originals, shared: whoever needs one while others do, in whatever sizes, or soon after, causes no
 * second read. What the origin says of them is remembered.
 */
export class Originals {
  readonly #parts: OriginalsParts;
  readonly #flights = new SingleFlight<OriginalWork>();

  constructor(parts: OriginalsParts) {
    this.#parts = parts;
  }

  /** Finds an original; it is at hand until the signal aborts. */
  find(originKey: string, approach: Approach, signal: AbortSignal): OriginalWork {
    const { versions, clock } = this.#parts;
    // Nobody joins what was begun before a purge, or long ago: what it has found may be out of date.
    const period = Math.floor(clock.nowMs() / MAX_FLIGHT_AGE_MS);
    const flightKey = `${versions.epochOf(originKey)} ${period} ${originKey}`;
    const { work, leave } = this.#flights.join(flightKey, (controls) =>
      this.#begin(originKey, approach, controls.signal),
    );
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    return work;
  }

  #begin(originKey: string, approach: Approach, signal: AbortSignal): OriginalWork {
    const epoch = this.#parts.versions.epochOf(originKey);
    const found = this.#find(originKey, approach, epoch, signal);
    let firstFrames: Promise<FoundOriginal> | undefined;
    let held: Holding | undefined;
    const release = (): void => {
      held?.original.then(
        (original) => original.release(),
        () => undefined,
      );
    };
    signal.addEventListener('abort', release, { once: true });
    return {
      found,
      hold: async ({ isHesitant, judge, noteRead }) => {
        let original: FoundOriginal = await found;
        signal.throwIfAborted();
        if (isHesitant && held === undefined && !this.#isAtHand(originKey, original)) {
          noteRead();
          firstFrames ??= this.#ask(originKey, epoch, () =>
            findByPrefix(this.#parts.source, originKey, FIRST_FRAMES_BYTES, signal),
          );
          original = await firstFrames;
          signal.throwIfAborted();
        }
        if (held === undefined && original.prefix !== undefined) judge(original.prefix);
        held ??= this.#hold(originKey, original, epoch);
        if (held.isRead) noteRead();
        return held.original;
      },
    };
  }

  /** By what is known of it, where that is fresh; else by asking. */
  async #find(
    originKey: string,
    approach: Approach,
    epoch: number,
    signal: AbortSignal,
  ): Promise<SeenOriginal> {
    const { source, versions, cache } = this.#parts;
    const version = versions.find(originKey);
    if (version?.isFresh) {
      const found = findLater(source, originKey, version.identity, signal);
      return { ...found, wasAsked: false };
    }
    const isWhole = approach === 'whole' && cache.get(originKey) === undefined;
    const prefixBytes = approach === 'first frames' ? FIRST_FRAMES_BYTES : IDENTITY_BYTES;
    const found = await this.#ask(originKey, epoch, () =>
      isWhole
        ? findByOpening(source, originKey, signal)
        : findByPrefix(source, originKey, prefixBytes, signal),
    );
    return { ...found, wasAsked: true };
  }

  /** Whether its bytes need no asking, or are being read from their beginning already. */
  #isAtHand(originKey: string, { identity, prefix, isOpen }: FoundOriginal): boolean {
    const isKept = this.#parts.cache.get(originKey)?.identity.etag === identity.etag;
    return isKept || isOpen || (prefix?.length ?? 0) > IDENTITY_BYTES;
  }

  #hold(originKey: string, found: FoundOriginal, epoch: number): Holding {
    const { cache, meter } = this.#parts;
    const kept = cache.get(originKey);
    const isRead = kept?.identity.etag !== found.identity.etag;
    if (meter !== undefined) meter.lookUps.originals[isRead ? 'missed' : 'found'] += 1;
    const original =
      kept === undefined || isRead ? this.#read(originKey, found, epoch) : this.#reserve(kept);
    return { original, isRead };
  }

  async #reserve(kept: KeptOriginal): Promise<HeldOriginal> {
    return { ...this.#parts.source.budget.reserve(kept.bytes.byteLength), ...kept };
  }

  async #read(originKey: string, found: FoundOriginal, epoch: number): Promise<HeldOriginal> {
    const { versions, cache } = this.#parts;
    const held = await this.#ask(originKey, epoch, found.hold);
    const { bytes, identity } = held;
    if (epoch === versions.epochOf(originKey)) cache.set(originKey, { bytes, identity });
    return held;
  }

  /** Takes note of what the origin says. */
  async #ask<Answer extends { readonly identity: OriginalIdentity }>(
    originKey: string,
    epoch: number,
    ask: () => Promise<Answer>,
  ): Promise<Answer> {
    const { versions } = this.#parts;
    const isCurrent = (): boolean => epoch === versions.epochOf(originKey);
    try {
      const answer = await ask();
      if (isCurrent()) versions.noteSeen(originKey, answer.identity);
      return answer;
    } catch (error) {
      if (error instanceof MediaError && isCurrent()) {
        if (error.code === 'UNKNOWN_MEDIA') versions.noteGone(originKey);
        else if (isOriginFailure(error)) versions.noteFailed(originKey);
      }
      throw error;
    }
  }
}

/** Whether the origin could not tell what it has. */
export function isOriginFailure(error: unknown): boolean {
  const code = error instanceof MediaError ? error.code : undefined;
  return code === 'ORIGIN_ERROR' || code === 'ORIGIN_TIMEOUT';
}
