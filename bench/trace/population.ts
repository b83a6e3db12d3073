import { createZipfRanks, hashPair, type Random } from '../harness/random.ts';
import { assumptions, DAY_S } from './assumptions.ts';
import type { Catalogue } from './catalogue.ts';
import { ChannelFeed } from './channel-feed.ts';

/** Content that has places, such as the avatar of each user: each holds one original at a time. */
export type PlacedKind = keyof typeof assumptions.turnoverPerDay;

/** Emojis of a guild: one for so many members, within bounds. */
const EMOJIS = { membersEach: 4, least: 2, most: 100 };
const STICKERS_PER_GUILD = 8;

const memberRanks = createZipfRanks(assumptions.memberExponent);
const wordRanks = createZipfRanks(assumptions.emojiExponent);

/**
 * Users and guilds with their content. Guild 0 is the most read one; a guild's members and emojis grow
 * with how much it is read. What has not been asked for yet is not drawn yet.
 */
export class Population {
  readonly users: number;
  readonly guilds: number;
  readonly #catalogue: Catalogue;
  readonly #members: Int32Array;
  readonly #emojiStart: Int32Array;
  readonly #channelStart: Int32Array;
  readonly #feeds: (ChannelFeed | undefined)[];
  /** The original in each place; -1 while none was seen. */
  readonly #places: Readonly<Record<PlacedKind, Int32Array>>;

  /** @param users with content; guilds follow from them */
  constructor(users: number, catalogue: Catalogue) {
    this.users = Math.max(2, Math.round(users));
    this.guilds = Math.max(2, Math.round(users / assumptions.usersPerGuild));
    this.#catalogue = catalogue;
    this.#members = this.#spreadMembers();
    const perMembers = (each: number, least: number, most: number): Int32Array =>
      startsOf(this.#members, (members) => Math.min(most, Math.max(least, members / each)));
    this.#emojiStart = perMembers(EMOJIS.membersEach, EMOJIS.least, EMOJIS.most);
    this.#channelStart = perMembers(assumptions.membersPerChannel, 1, assumptions.mostChannels);
    this.#feeds = Array<ChannelFeed | undefined>(this.#channelStart.at(-1) ?? 0);
    const places = (count: number): Int32Array => new Int32Array(count).fill(-1);
    this.#places = {
      'user avatar': places(this.users),
      // Each user has one such, in the guild where it is seen.
      'member avatar': places(this.users),
      'guild icon': places(this.guilds),
      'guild banner': places(this.guilds),
      'guild splash': places(this.guilds),
      'custom emoji': places(this.#emojiStart.at(-1) ?? 0),
      sticker: places(this.guilds * STICKERS_PER_GUILD),
    };
  }

  /** The original that is in a place now: of a user, a guild, or what was drawn. */
  originalAt(kind: PlacedKind, place: number, nowS: number): number {
    const places = this.#places[kind];
    const known = places[place] ?? -1;
    if (known >= 0) return known;
    const added = this.#catalogue.addOriginal(kind, nowS);
    places[place] = added;
    return added;
  }

  /** A member of a guild, as often as members speak. */
  drawMember(guild: number, random: Random): number {
    const rank = memberRanks(this.#members[guild] ?? 1, random);
    const lot = hashPair(guild, rank) / 2 ** 32;
    return Math.floor(lot ** assumptions.loudness * this.users);
  }

  /** The place of an emoji of a guild, as often as emojis are used. */
  drawEmoji(guild: number, random: Random): number {
    return drawPlace(this.#emojiStart, guild, random);
  }

  /** The place of a sticker of a guild. */
  drawSticker(guild: number, random: Random): number {
    return guild * STICKERS_PER_GUILD + wordRanks(STICKERS_PER_GUILD, random);
  }

  /** A channel of a guild, some read more than others. */
  drawChannel(guild: number, random: Random): ChannelFeed {
    const channel = drawPlace(this.#channelStart, guild, random);
    let feed = this.#feeds[channel];
    if (feed === undefined) {
      feed = new ChannelFeed(this.#catalogue);
      this.#feeds[channel] = feed;
    }
    return feed;
  }

  /** What is replaced within a span of time: the old is deleted at its end. */
  turnOver(spanS: number, nowS: number, random: Random): void {
    for (const [kind, places] of Object.entries(this.#places)) {
      const perDay = assumptions.turnoverPerDay[kind as PlacedKind];
      const mean = (places.length * perDay * spanS) / DAY_S;
      const count = Math.floor(mean) + (random.next() < mean % 1 ? 1 : 0);
      for (let index = 0; index < count; index += 1) {
        const place = Math.floor(random.next() * places.length);
        const old = this.#catalogue.originals[places[place] ?? -1];
        if (old !== undefined) old.deletedS = nowS;
        places[place] = -1;
      }
    }
  }

  /** Members of each guild, in proportion to how much it is read; none has more than half of all users. */
  #spreadMembers(): Int32Array {
    const weights = Float64Array.from(
      { length: this.guilds },
      (_, guild) => (guild + 1) ** -assumptions.guildExponent,
    );
    const each =
      (this.users * assumptions.guildsPerUser) / weights.reduce((sum, weight) => sum + weight, 0);
    return Int32Array.from(weights, (weight) =>
      Math.max(2, Math.min(this.users / 2, Math.round(weight * each))),
    );
  }
}

/** A place of a guild, the first ones more often. */
function drawPlace(starts: Int32Array, guild: number, random: Random): number {
  const start = starts[guild] ?? 0;
  return start + wordRanks((starts[guild + 1] ?? 0) - start, random);
}

/** Where the places of each guild begin, and, at the end, how many there are in all. */
function startsOf(members: Int32Array, placesOf: (members: number) => number): Int32Array {
  const starts = new Int32Array(members.length + 1);
  for (const [guild, count] of members.entries()) {
    starts[guild + 1] = (starts[guild] ?? 0) + Math.max(1, Math.round(placesOf(count)));
  }
  return starts;
}
