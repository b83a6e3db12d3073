/** How many clients were cut off: slow readers; idle ones for the sake of new ones; new ones for want of room. */
export interface CutOffs {
  readonly slowReaders: number;
  readonly evicted: number;
  readonly turnedAway: number;
}

/** Counts the clients that were cut off, for those who look, and for who tells of it now and then. */
export class CutOffTally {
  readonly #sinceStart = { slowReaders: 0, evicted: 0, turnedAway: 0 };
  readonly #sinceLast = { slowReaders: 0, evicted: 0, turnedAway: 0 };

  get sinceStart(): CutOffs {
    return this.#sinceStart;
  }

  note(what: keyof CutOffs): void {
    this.#sinceStart[what] += 1;
    this.#sinceLast[what] += 1;
  }

  /** What has come since the last call; `undefined` where there is nothing to tell. */
  takeSinceLast(): CutOffs | undefined {
    const counts = { ...this.#sinceLast };
    Object.assign(this.#sinceLast, { slowReaders: 0, evicted: 0, turnedAway: 0 });
    return Object.values(counts).some((count) => count > 0) ? counts : undefined;
  }
}
