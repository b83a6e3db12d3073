/** Controls of shared work. */
export interface FlightControls {
  /** Aborts when the last user leaves. */
  readonly signal: AbortSignal;
  /** Keeps the work alive until a promise settles, even if all users leave. */
  readonly keepAlive: (promise: Promise<unknown>) => void;
}

/** Reason of every abort. Shared: creating a `DOMException` with its stack takes longer than the rest of an end. */
const NO_USERS_LEFT = new DOMException('No user of the work is left.', 'AbortError');

/** Work in progress, with a count of its users. */
class Flight<Work> {
  readonly work: Work;
  readonly #controller = new AbortController();
  readonly #onEnd: () => void;
  #users = 0;

  constructor(begin: (controls: FlightControls) => Work, onEnd: () => void) {
    this.#onEnd = onEnd;
    const { signal } = this.#controller;
    this.work = begin({ signal, keepAlive: (promise) => this.#keepAlive(promise) });
  }

  enter(): void {
    this.#users += 1;
  }

  leave(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#onEnd();
    // Last: a user who joins during the abort must not find this flight.
    this.#controller.abort(NO_USERS_LEFT);
  }

  #keepAlive(promise: Promise<unknown>): void {
    if (this.#controller.signal.aborted) return;
    this.enter();
    const leave = (): void => this.leave();
    promise.then(leave, leave);
  }
}

/**
 * One piece of work per key, which concurrent users share. Any user may leave, also the first one; the last one to leave
 * aborts the work. Results and failures are not remembered.
 */
export class SingleFlight<Work> {
  readonly #flights = new Map<string, Flight<Work>>();
  readonly #isJoinable: (work: Work) => boolean;

  /** @param isJoinable whether new users may still join */
  constructor(isJoinable: (work: Work) => boolean) {
    this.#isJoinable = isJoinable;
  }

  /**
   * Joins the work of a key, or begins it, for a user who calls `leave` once. Users await shared promises with
   * `unlessAborted`, so that one who leaves is forgotten.
   *
   * @returns `isJoined`: another user began it
   * @throws errors of `begin`
   */
  join(key: string, begin: (controls: FlightControls) => Work) {
    const running = this.#flights.get(key);
    const isJoined = running !== undefined && this.#isJoinable(running.work);
    const flight: Flight<Work> = isJoined
      ? running
      : new Flight(begin, () => {
          // Its successor may be in the map already.
          if (this.#flights.get(key) === flight) this.#flights.delete(key);
        });
    if (!isJoined) this.#flights.set(key, flight);
    flight.enter();
    return { work: flight.work, isJoined, leave: () => flight.leave() };
  }
}
