/** Controls that the work of a key is given at its beginning. */
export interface FlightControls {
  /** Aborts when no user is left. */
  readonly signal: AbortSignal;
  /** Keeps the work alive until a promise settles, even if all users leave. */
  readonly keep: (promise: Promise<unknown>) => void;
}

/**
 * Reason that all flights end with, those too whose users were served. One for all of them: a `DOMException` is made
 * with its stack, which takes longer than all else of an end.
 */
const NO_USERS_LEFT = new DOMException('No user of the work is left.', 'AbortError');

/** Work under way, with a count of its users. */
class Flight<Work> {
  readonly work: Work;
  readonly #controller = new AbortController();
  readonly #onEnd: () => void;
  #users = 0;

  constructor(begin: (controls: FlightControls) => Work, onEnd: () => void) {
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
    this.#onEnd();
    // Last: a user who wants the key again in the moment of the abort must not find this one.
    this.#controller.abort(NO_USERS_LEFT);
  }

  #keep(promise: Promise<unknown>): void {
    if (this.#controller.signal.aborted) return; // nothing is left that could go on
    this.enter();
    const leave = (): void => this.leave();
    promise.then(leave, leave);
  }
}

/**
 * One piece of work per key, shared by all users who want it at the same time. A user who leaves
 * harms no other, the one who began it included; the last one out aborts what is still going on.
 * Nothing is remembered: a user who comes after the last one begins anew, after a failure too.
 */
export class SingleFlight<Work> {
  readonly #flights = new Map<string, Flight<Work>>();
  readonly #isJoinable: (work: Work) => boolean;

  /** @param isJoinable whether new users may still join; those that have joined stay */
  constructor(isJoinable: (work: Work) => boolean) {
    this.#isJoinable = isJoinable;
  }

  /**
   * Joins the work of a key, or begins it, for a user who calls `leave`, once. What users share is awaited with
   * `unlessAborted`, so that a user who leaves is forgotten.
   *
   * @param begin starts the work
   * @returns `isJoined`: another user began it
   * @throws what `begin` throws
   */
  join(key: string, begin: (controls: FlightControls) => Work) {
    const running = this.#flights.get(key);
    const isJoined = running !== undefined && this.#isJoinable(running.work);
    const flight: Flight<Work> = isJoined
      ? running
      : new Flight(begin, () => {
          // Not another one, which has taken its place.
          if (this.#flights.get(key) === flight) this.#flights.delete(key);
        });
    if (!isJoined) this.#flights.set(key, flight);
    flight.enter();
    return { work: flight.work, isJoined, leave: () => flight.leave() };
  }
}
