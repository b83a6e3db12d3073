import { type FlightControls, SingleFlight } from '../single-flight.ts';
import type { OriginalName } from './backend.ts';
import { Original, type OriginalParts } from './original.ts';

/** Originals, shared: concurrent requests for the same original, in whatever sizes, cause one read. */
export class Originals {
  readonly #parts: OriginalParts;
  readonly #flights = new SingleFlight<Original>((original) => original.isJoinable);
  /** Work under way, also that which can no longer be joined. */
  readonly #underWay = new Set<Original>();

  constructor(parts: OriginalParts) {
    this.#parts = parts;
  }

  /** Joins the work on an original, or begins it; `leave` must be called. */
  join(name: OriginalName) {
    return this.#flights.join(name.originKey, (flight) => this.begin(name, flight));
  }

  /** Begins work on an original that no request joins here; the work is over when its flight is. */
  begin(name: OriginalName, flight: FlightControls): Original {
    const original = new Original(this.#parts, name, flight);
    this.#underWay.add(original);
    flight.signal.addEventListener('abort', () => this.#underWay.delete(original), { once: true });
    return original;
  }

  /** Outdates the work under way on originals whose keys fit. */
  outdateWhere(fits: (originKey: string) => boolean): void {
    for (const original of this.#underWay) if (fits(original.originKey)) original.outdate();
  }

  /** The same, and forgets what is in memory of these originals. */
  purge(fits: (originKey: string) => boolean): void {
    this.outdateWhere(fits);
    this.#parts.cache.deleteWhere(fits);
  }
}
