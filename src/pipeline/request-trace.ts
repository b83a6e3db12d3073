import type { CacheOutcome, Room, RoomTiming } from './outcome.ts';
import type { Clock } from './ports.ts';

/**
 * What became of one request on its way: the rooms it entered with the time spent in each, and
 * what the cache had to say. Kept apart from the answer, since an error has it as well.
 */
export class RequestTrace {
  readonly #clock: Clock;
  readonly #durationsMs = new Map<Room, number>();
  outcome: CacheOutcome | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Does some work in a room, and adds its time to the room's. */
  async time<Result>(room: Room, work: () => Promise<Result>): Promise<Result> {
    const leave = this.enter(room);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Enters a room; the returned function leaves it. */
  enter(room: Room): () => void {
    const enteredMs = this.#clock.nowMs();
    return () => {
      const spentMs = this.#clock.nowMs() - enteredMs;
      this.#durationsMs.set(room, (this.#durationsMs.get(room) ?? 0) + spentMs);
    };
  }

  /** Each room entered so far, in order of the first visit's end. */
  get timings(): readonly RoomTiming[] {
    return [...this.#durationsMs].map(([room, durationMs]) => ({ room, durationMs }));
  }
}
