import { unlessAborted } from './abort.ts';

/** What the work of a key is given at its beginning. */
export interface FlightControls {
  /** Aborts when nobody uses the work any more. */
  readonly signal: AbortSignal;
  /** Goes on to the end of a promise as if somebody waited for it: for what is not worth stopping. */
  readonly keep: (promise: Promise<unknown>) => void;
}

/** A user's part in the work of a key. */
export interface Joined<Work> {
  readonly work: Work;
  /** Whether somebody else began it. */
  readonly isJoined: boolean;
  /** To be called once. */
  readonly leave: () => void;
}

/** Work under way, with a count of those who use it. */
class Flight<Work> {
  readonly work: Work;
  readonly #controller = new AbortController();
  readonly #onEnd: (flight: Flight<Work>) => void;
  #users = 0;

  constructor(begin: (controls: FlightControls) => Work, onEnd: (flight: Flight<Work>) => void) {
    this.#onEnd = onEnd;
    const { signal } = this.#controller;
    this.work = begin({ signal, keep: (promise) => this.#keep(promise) });
  }

  enter(): void {
    this.#users += 1;
  }

  leave(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#onEnd(this);
    // Last: who wants the key again in the moment of the abort must not find this one.
    this.#controller.abort();
  }

  #keep(promise: Promise<unknown>): void {
    if (this.#controller.signal.aborted) return; // there is nothing left that could go on
    this.enter();
    const leave = (): void => this.leave();
    promise.then(leave, leave);
  }
}

/**
 * One piece of work per key, shared by everyone who wants it at the same time. A user who leaves
 * harms no other, the one who began it included; the last one out aborts what is still going on.
 * Nothing is remembered: who comes after the last user begins anew, after a failure too.
 *
 * Users leave at the end of the tick in which they are served or their signal aborts. Who comes in
 * that same tick joins them, and keeps the work going, or shares its failure.
 */
export class SingleFlight<Work> {
  readonly #flights = new Map<string, Flight<Work>>();

  /**
   * Joins the work of a key, or begins it.
   *
   * @param signal of this user alone; when it aborts, this user leaves and gets its reason
   * @param begin starts the work. It must not run its own key: the work would wait for itself
   * @param use what this user wants of the work; `isJoined` tells that somebody else began it. What
   *   it shares with other users it awaits with `unlessAborted`, so that whoever leaves is forgotten
   * @throws what `begin` or `use` throw, or `signal.reason`
   */
  async run<Result>(
    key: string,
    signal: AbortSignal,
    begin: (controls: FlightControls) => Work,
    use: (work: Work, isJoined: boolean) => Promise<Result>,
  ): Promise<Result> {
    signal.throwIfAborted();
    const { work, isJoined, leave } = this.join(key, begin);
    try {
      return await unlessAborted(use(work, isJoined), signal);
    } finally {
      leave();
    }
  }

  /**
   * Joins the work of a key, or begins it, for a user who says himself when he leaves.
   *
   * @throws what `begin` throws
   */
  join(key: string, begin: (controls: FlightControls) => Work): Joined<Work> {
    const running = this.#flights.get(key);
    const flight = running ?? this.#begin(key, begin);
    flight.enter();
    return { work: flight.work, isJoined: running !== undefined, leave: () => flight.leave() };
  }

  /** Number of keys being worked on. */
  get size(): number {
    return this.#flights.size;
  }

  #begin(key: string, begin: (controls: FlightControls) => Work): Flight<Work> {
    const flight = new Flight(begin, (ended) => {
      // Not another one, which has taken its place where `begin` ran its own key in spite of all.
      if (this.#flights.get(key) === ended) this.#flights.delete(key);
    });
    this.#flights.set(key, flight);
    return flight;
  }
}
