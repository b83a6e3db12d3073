import { type Random, WeightedChoice } from '../harness/random.ts';
import { assumptions, DAY_S } from './assumptions.ts';
import type { Catalogue } from './catalogue.ts';
import type { ChannelFeed, Message } from './channel-feed.ts';
import type { Population } from './population.ts';
import { DEVICE_WEIGHTS, type PlacedUsage, type Usage, usages, variantOf } from './usages.ts';
import { ZipfRanks } from './zipf.ts';

const deviceChoice = new WeightedChoice(DEVICE_WEIGHTS);
const guildRanks = new ZipfRanks(assumptions.guildExponent);
const sessionChoice = new WeightedChoice(Object.values(assumptions.sessions));
const sessionKinds = Object.keys(assumptions.sessions) as (keyof typeof assumptions.sessions)[];

/**
 * One client for a moment: it opens a channel, a profile, an invite, or starts, and asks for all that it
 * shows at once, each picture once.
 */
export class Session {
  readonly #population: Population;
  readonly #catalogue: Catalogue;
  readonly #random: Random;
  readonly #nowS: number;
  readonly #device: number;
  readonly #asked = new Set<number>();

  constructor(population: Population, catalogue: Catalogue, random: Random, nowS: number) {
    this.#population = population;
    this.#catalogue = catalogue;
    this.#random = random;
    this.#nowS = nowS;
    this.#device = deviceChoice.next(random);
  }

  /** The renderings that it asks for; their number varies. */
  run(): ReadonlySet<number> {
    const guild = this.#drawGuild();
    switch (sessionKinds[sessionChoice.next(this.#random)]) {
      case 'start':
        this.#start();
        break;
      case 'profile':
        this.#openProfile(guild);
        break;
      case 'invite':
        this.#ask('invite', guild);
        this.#ask('guild list', guild);
        break;
      default:
        this.#openChannel(guild);
    }
    return this.#asked;
  }

  #openChannel(guild: number): void {
    const random = this.#random;
    const feed = this.#population.drawChannel(guild, random);
    this.#repeat(assumptions.messagesPerChannelView, () => feed.say(this.#write(guild)));
    const shown = Math.ceil(random.exponential(assumptions.messagesShown));
    for (const { author, emojis } of feed.latest(shown)) {
      this.#showAuthor(author);
      for (const place of emojis) this.#ask('emoji', place);
    }
    this.#repeat(assumptions.stickersPerChannelView, () =>
      this.#ask('sticker', this.#population.drawSticker(guild, random)),
    );
    this.#scroll(feed);
  }

  #write(guild: number): Message {
    const random = this.#random;
    const emojis: number[] = [];
    this.#repeat(assumptions.emojisPerMessage, () => {
      const isForeign = random.next() < assumptions.foreignEmojiShare;
      emojis.push(this.#population.drawEmoji(isForeign ? this.#drawGuild() : guild, random));
    });
    return { author: this.#population.drawMember(guild, random), emojis };
  }

  #showAuthor(author: number): void {
    const random = this.#random;
    if (random.next() < assumptions.memberAvatarShare) {
      this.#ask('member author', author);
      return;
    }
    this.#ask('author', author);
    if (random.next() < assumptions.hoverShare) this.#ask('hovered author', author);
  }

  #scroll(feed: ChannelFeed): void {
    const random = this.#random;
    this.#repeat(assumptions.attachmentsPerChannelView, () => {
      const attachment = feed.at(feed.drawDepth(random));
      if (random.next() >= this.#askedShare(attachment)) return;
      this.#askFor('thumbnail', attachment);
      if (random.next() < assumptions.fullViewShare) this.#askFor('full view', attachment);
    });
    this.#repeat(this.#asked.size * assumptions.uploadsPerRequest, () => {
      this.#askFor('thumbnail', feed.post(this.#nowS, random));
    });
  }

  /** Of the clients that would show an attachment, how many ask for it. */
  #askedShare(attachment: number): number {
    const { createdS = 0, deletedS = 0 } = this.#catalogue.originals[attachment] ?? {};
    if (deletedS <= this.#nowS) return assumptions.staleShare;
    const ageDays = (this.#nowS - createdS) / DAY_S;
    return Math.max(assumptions.firstSeenShare, 1 / (1 + ageDays / assumptions.seenAfterDays));
  }

  #start(): void {
    this.#repeat(assumptions.guildListLength, () => this.#ask('guild list', this.#drawGuild()));
  }

  #openProfile(guild: number): void {
    const member = this.#population.drawMember(guild, this.#random);
    this.#ask('profile avatar', member);
    this.#ask('profile banner', guild);
  }

  #drawGuild(): number {
    return guildRanks.next(this.#population.guilds, this.#random);
  }

  /** For what is in a place of the usage's kind now. */
  #ask(usage: PlacedUsage, place: number): void {
    this.#askFor(usage, this.#population.originalAt(usages[usage].kind, place, this.#nowS));
  }

  #askFor(usage: Usage, original: number): void {
    const variant = variantOf(usage, this.#device);
    this.#asked.add(this.#catalogue.rendering(original, variant));
  }

  /** Does something a random number of times, `mean` at the mean. */
  #repeat(mean: number, act: () => void): void {
    const times = Math.floor(this.#random.exponential(mean) + this.#random.next());
    for (let time = 0; time < times; time += 1) act();
  }
}
