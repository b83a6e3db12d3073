import type { Random } from '../harness/random.ts';
import { assumptions, DAY_S } from './assumptions.ts';
import type { Catalogue } from './catalogue.ts';

/** Nobody scrolls further, in attachments. */
const MOST_DEPTH = 400;

/** The attachments of a channel, the newest first to be seen. */
export class ChannelFeed {
  readonly #catalogue: Catalogue;
  /** Posted since the start of the trace, the oldest first. */
  readonly #posted: number[] = [];
  /** From before, the youngest first; drawn when somebody scrolls there. */
  readonly #earlier: number[] = [];

  constructor(catalogue: Catalogue) {
    this.#catalogue = catalogue;
  }

  /** Somebody posts a picture; some of them are deleted soon. */
  post(nowS: number, random: Random): number {
    const isDeleted = random.next() < assumptions.deletedAttachmentShare;
    const keptS = random.exponential(assumptions.attachmentDaysToDeletion * DAY_S);
    const deletedS = isDeleted ? nowS + keptS : Number.POSITIVE_INFINITY;
    const added = this.#catalogue.addOriginal('attachment', nowS, deletedS);
    this.#posted.push(added);
    return added;
  }

  /** How far somebody scrolls, in attachments. */
  drawDepth(random: Random): number {
    const { recentAttachments, scrollExponent } = assumptions;
    const depth = recentAttachments * ((1 - random.next()) ** (-1 / scrollExponent) - 1);
    return Math.min(MOST_DEPTH, Math.floor(depth));
  }

  /** The attachment at a depth, 0 the newest. */
  at(depth: number): number {
    const posted = this.#posted[this.#posted.length - 1 - depth];
    if (posted !== undefined) return posted;
    const place = depth - this.#posted.length;
    while (this.#earlier.length <= place) {
      // Their age is unknown; that they are old is enough.
      this.#earlier.push(this.#catalogue.addOriginal('attachment', -DAY_S * 30));
    }
    return this.#earlier[place] ?? 0;
  }
}
