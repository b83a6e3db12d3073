/** Work on an original, as far as purges concern it. */
export interface WorkStamp {
  readonly beganAfter: number;
}

interface Purge {
  readonly count: number;
  readonly fits: (originKey: string) => boolean;
}

/**
 * Purges that work under way may have to know of: what was begun before a purge is neither kept, joined nor served
 * after it. A purge is forgotten once all work that is older has ended.
 */
export class Purges {
  #count = 0;
  #recent: readonly Purge[] = [];
  /** Oldest first. */
  readonly #underWay = new Set<WorkStamp>();

  /** Stamps work that begins now; `end` must be called for it. */
  begin(): WorkStamp {
    const stamp = { beganAfter: this.#count };
    this.#underWay.add(stamp);
    return stamp;
  }

  end(stamp: WorkStamp): void {
    this.#underWay.delete(stamp);
    if (this.#recent.length === 0) return;
    const [oldest] = this.#underWay;
    const { beganAfter = Number.POSITIVE_INFINITY } = oldest ?? {};
    this.#recent = this.#recent.filter(({ count }) => count > beganAfter);
  }

  /** Notes a purge of the originals whose keys fit. */
  note(fits: (originKey: string) => boolean): void {
    if (this.#underWay.size === 0) return;
    this.#count += 1;
    this.#recent = [...this.#recent, { count: this.#count, fits }];
  }

  /** Whether an original was purged since work on it began. */
  isOutdated({ beganAfter }: WorkStamp, originKey: string): boolean {
    return this.#recent.some(({ count, fits }) => count > beganAfter && fits(originKey));
  }
}
