import { unlessAborted } from './abort.ts';

interface Flight<Work> {
  readonly work: Work;
  readonly controller: AbortController;
  users: number;
}

/**
 * One piece of work per key, shared by everyone who wants it at the same time. A user who leaves
 * harms no other, the one who began it included; the last one out aborts what is still going on.
 * Nothing is remembered: who comes after the last user begins anew, after a failure too.
 */
export class SingleFlight<Work> {
  readonly #flights = new Map<string, Flight<Work>>();

  /**
   * Joins the work of a key, or begins it.
   *
   * @param signal of this user alone; when it aborts, this user leaves and gets its reason
   * @param begin starts the work; its signal aborts when nobody uses it any more
   * @param use what this user wants of the work; `isJoined` tells that somebody else began it
   * @throws what `begin` or `use` throw, or `signal.reason`
   */
  async run<Result>(
    key: string,
    signal: AbortSignal,
    begin: (signal: AbortSignal) => Work,
    use: (work: Work, isJoined: boolean) => Promise<Result>,
  ): Promise<Result> {
    signal.throwIfAborted();
    const running = this.#flights.get(key);
    const flight = running ?? this.#begin(key, begin);
    flight.users += 1;
    try {
      return await unlessAborted(use(flight.work, running !== undefined), signal);
    } finally {
      flight.users -= 1;
      if (flight.users === 0) {
        this.#flights.delete(key);
        flight.controller.abort();
      }
    }
  }

  /** Number of keys being worked on. */
  get size(): number {
    return this.#flights.size;
  }

  #begin(key: string, begin: (signal: AbortSignal) => Work): Flight<Work> {
    const controller = new AbortController();
    const flight = { work: begin(controller.signal), controller, users: 0 };
    this.#flights.set(key, flight);
    return flight;
  }
}
