import type { Random } from '../harness/random.ts';
import { assumptions, DAY_S } from './assumptions.ts';
import type { Catalogue } from './catalogue.ts';

/** Nobody scrolls further, in attachments. */
const MOST_DEPTH = 400;

/** A channel remembers so many messages; nobody is shown more at once. */
const MOST_MESSAGES = 60;

/** A message, as far as it shows pictures. */
export interface Message {
  readonly author: number;
  /** Places of emojis. */
  readonly emojis: readonly number[];
}

/** A channel: all who open it see the same last messages, and the same attachments, the newest first. */
export class ChannelFeed {
  readonly #catalogue: Catalogue;
  /** Posted since the start of the trace, the oldest first. */
  readonly #posted: number[] = [];
  /** From before, by age, 0 the youngest; drawn when somebody asks for it. */
  readonly #earlier = new Map<number, number>();
  /** The latest last. */
  readonly #messages: Message[] = [];

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

  /** The attachment to which somebody scrolls. */
  scroll(random: Random): number {
    const { recentAttachments, scrollExponent } = assumptions;
    const far = recentAttachments * ((1 - random.next()) ** (-1 / scrollExponent) - 1);
    const depth = Math.min(MOST_DEPTH, Math.floor(far));
    const posted = this.#posted[this.#posted.length - 1 - depth];
    if (posted !== undefined) return posted;
    const place = depth - this.#posted.length;
    const earlier =
      // Their age is unknown; that they are old is enough.
      this.#earlier.get(place) ?? this.#catalogue.addOriginal('attachment', -DAY_S * 30);
    this.#earlier.set(place, earlier);
    return earlier;
  }

  say(message: Message): void {
    this.#messages.push(message);
    if (this.#messages.length > MOST_MESSAGES) this.#messages.shift();
  }

  /** The last so many, or as many as there are. */
  latest(count: number): readonly Message[] {
    return this.#messages.slice(Math.max(0, this.#messages.length - count));
  }
}
