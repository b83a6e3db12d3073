/**
 * User ids for workers of a service that was started as root: each has one of its own, so that none may stop another
 * or read what it holds. From a range that neither Debian nor systemd gives to anybody (systemd's "Users, Groups, UIDs
 * and GIDs"), and that containers have too, whose ids end at 65535.
 */
const FIRST = 60_578;
const LAST = 61_183;

/** The ids that are free; a service has far fewer workers. */
export class UserIds {
  readonly #taken = new Set<number>();
  // Two services on one machine do not begin with the same one.
  #next = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1));

  /**
   * An id that no living worker has.
   *
   * @throws Error if all are taken
   */
  take(): number {
    for (let count = FIRST; count <= LAST; count += 1) {
      const id = this.#next;
      this.#next = id === LAST ? FIRST : id + 1;
      if (!this.#taken.has(id)) {
        this.#taken.add(id);
        return id;
      }
    }
    throw new Error('There are no user ids left for workers.');
  }

  /** Gives an id back, once its worker has ended. */
  give(id: number): void {
    this.#taken.delete(id);
  }
}
