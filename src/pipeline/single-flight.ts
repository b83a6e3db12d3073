import { setMaxListeners } from 'node:events';

export interface FlightControls {
  /** Aborts when the last user leaves. */
  readonly signal: AbortSignal;
  /** Keeps the work alive until a promise settles, even if all users leave. */
  readonly keepAlive: (promise: Promise<unknown>) => void;
}

/** Reason of every abort; shared, since creating a `DOMException` with its stack is slow. */
const NO_USERS_LEFT = new DOMException('No user of the work is left.', 'AbortError');

class Flight<Work> {
  readonly work: Work;
  readonly #controller = new AbortController();
  readonly #onEnd: () => void;
  #users = 0;

  constructor(begin: (controls: FlightControls) => Work, onEnd: () => void) {
    this.#onEnd = onEnd;
    const { signal } = this.#controller;
    // Any number of users may wait: Node.js warns of a memory leak from 11 listeners.
    setMaxListeners(0, signal);
    this.work = begin({ signal, keepAlive: (promise) => this.#keepAlive(promise) });
  }

  enter(): void {
    this.#users += 1;
  }

  leave(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#onEnd();
    // Last, so that a user who joins during the abort does not find this flight.
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
 * One piece of work per key, which concurrent users share. The last user to leave aborts it; results and failures are
 * not remembered.
 */
export class SingleFlight<Work> {
  readonly #flights = new Map<string, Flight<Work>>();
  readonly #isJoinable: (work: Work) => boolean;

  constructor(isJoinable: (work: Work) => boolean) {
    this.#isJoinable = isJoinable;
  }

  /**
   * Joins the work of a key, or begins it; the user must call `leave` once. Users await shared promises with
   * `unlessAborted`, so that a user who left is forgotten.
   *
   * @returns `isJoined`: another user began the work
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
