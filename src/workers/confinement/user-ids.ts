/**
 * User ids for workers of a service that was started as root: each worker has its own, so that none can signal another
 * or read its memory. The range is unused by Debian and systemd (systemd's "Users, Groups, UIDs and GIDs"), and exists
 * in containers too, whose ids end at 65535.
 */
const FIRST = 60_578;
const LAST = 61_183;

/** Pool of user ids; a service has far fewer workers. */
export class UserIds {
  readonly #taken = new Set<number>();
  // Two services on one machine should not begin with the same id.
  #next = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1));

  /**
   * Returns an id that no living worker has.
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
    throw new Error('All user ids for workers are taken.');
  }

  /** Returns an id to the pool, once its worker has ended. */
  give(id: number): void {
    this.#taken.delete(id);
  }
}
