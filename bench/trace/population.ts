import type { Random } from '../harness/random.ts';
import { assumptions, DAY_S } from './assumptions.ts';
import type { Catalogue } from './catalogue.ts';
import { ChannelFeed } from './channel-feed.ts';
import type { ContentKind } from './shapes.ts';
import { ZipfRanks } from './zipf.ts';

/** Places that hold one original at a time, such as the avatar of each user; -1 while none was seen. */
interface Slots {
  readonly kind: ContentKind;
  readonly current: Int32Array;
  readonly turnoverPerDay: number;
}

/** Emojis of a guild: one for so many members, within bounds. */
const EMOJIS = { membersEach: 4, least: 2, most: 100 };
const STICKERS_PER_GUILD = 8;

const memberRanks = new ZipfRanks(assumptions.memberExponent);
const wordRanks = new ZipfRanks(assumptions.emojiExponent);

/**
 * Users and guilds with their content. Guild 0 is the most read one; a guild's members and emojis grow
 * with how much it is read. What nobody has asked for yet is not drawn yet.
 */
export class Population {
  readonly users: number;
  readonly guilds: number;
  readonly #catalogue: Catalogue;
  readonly #members: Int32Array;
  readonly #emojiStart: Int32Array;
  readonly #channelStart: Int32Array;
  readonly #feeds: (ChannelFeed | undefined)[];
  readonly #avatars: Slots;
  readonly #memberAvatars: Slots;
  readonly #icons: Slots;
  readonly #banners: Slots;
  readonly #splashes: Slots;
  readonly #emojis: Slots;
  readonly #stickers: Slots;

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
    const { avatar, memberAvatar, icon, emoji, banner } = assumptions.turnoverPerDay;
    const slots = (kind: ContentKind, count: number, turnoverPerDay: number): Slots => ({
      kind,
      current: new Int32Array(count).fill(-1),
      turnoverPerDay,
    });
    this.#avatars = slots('user avatar', this.users, avatar);
    this.#memberAvatars = slots('member avatar', this.users, memberAvatar);
    this.#icons = slots('guild icon', this.guilds, icon);
    this.#banners = slots('guild banner', this.guilds, banner);
    this.#splashes = slots('guild splash', this.guilds, banner);
    this.#emojis = slots('custom emoji', this.#emojiStart.at(-1) ?? 0, emoji);
    this.#stickers = slots('sticker', this.guilds * STICKERS_PER_GUILD, emoji);
  }

  /** A member of a guild, as often as members speak. */
  drawMember(guild: number, random: Random): number {
    const rank = memberRanks.next(this.#members[guild] ?? 1, random);
    const lot = mix(guild, rank) / 2 ** 31;
    return Math.floor(lot ** assumptions.loudness * this.users);
  }

  avatarOf(user: number, nowS: number): number {
    return this.#show(this.#avatars, user, nowS);
  }

  /** Each user has one such, in the guild where it is seen. */
  memberAvatarOf(user: number, nowS: number): number {
    return this.#show(this.#memberAvatars, user, nowS);
  }

  iconOf(guild: number, nowS: number): number {
    return this.#show(this.#icons, guild, nowS);
  }

  bannerOf(guild: number, nowS: number): number {
    return this.#show(this.#banners, guild, nowS);
  }

  splashOf(guild: number, nowS: number): number {
    return this.#show(this.#splashes, guild, nowS);
  }

  /** The place of an emoji of a guild, as often as emojis are used. */
  drawEmoji(guild: number, random: Random): number {
    const start = this.#emojiStart[guild] ?? 0;
    const count = (this.#emojiStart[guild + 1] ?? 0) - start;
    return start + wordRanks.next(count, random);
  }

  emojiAt(place: number, nowS: number): number {
    return this.#show(this.#emojis, place, nowS);
  }

  drawSticker(guild: number, nowS: number, random: Random): number {
    const place = guild * STICKERS_PER_GUILD + wordRanks.next(STICKERS_PER_GUILD, random);
    return this.#show(this.#stickers, place, nowS);
  }

  /** A channel of a guild, some read more than others. */
  drawChannel(guild: number, random: Random): ChannelFeed {
    const start = this.#channelStart[guild] ?? 0;
    const count = (this.#channelStart[guild + 1] ?? 0) - start;
    const channel = start + wordRanks.next(count, random);
    let feed = this.#feeds[channel];
    if (feed === undefined) {
      feed = new ChannelFeed(this.#catalogue);
      this.#feeds[channel] = feed;
    }
    return feed;
  }

  /** What is replaced within a span of time: the old is deleted at its end. */
  turnOver(spanS: number, nowS: number, random: Random): void {
    for (const { current, turnoverPerDay } of [
      this.#avatars,
      this.#memberAvatars,
      this.#icons,
      this.#banners,
      this.#splashes,
      this.#emojis,
      this.#stickers,
    ]) {
      const mean = (current.length * turnoverPerDay * spanS) / DAY_S;
      const count = Math.floor(mean) + (random.next() < mean % 1 ? 1 : 0);
      for (let index = 0; index < count; index += 1) {
        const place = Math.floor(random.next() * current.length);
        const old = this.#catalogue.originals[current[place] ?? -1];
        if (old !== undefined) old.deletedS = nowS;
        current[place] = -1;
      }
    }
  }

  #show({ kind, current }: Slots, place: number, nowS: number): number {
    const known = current[place] ?? -1;
    if (known >= 0) return known;
    const added = this.#catalogue.addOriginal(kind, nowS);
    current[place] = added;
    return added;
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

/** Where the places of each guild begin, and, at the end, how many there are in all. */
function startsOf(members: Int32Array, placesOf: (members: number) => number): Int32Array {
  const starts = new Int32Array(members.length + 1);
  for (const [guild, count] of members.entries()) {
    starts[guild + 1] = (starts[guild] ?? 0) + Math.max(1, Math.round(placesOf(count)));
  }
  return starts;
}

/** Two numbers into one of 31 bits, as if at random (the last steps of MurmurHash3). */
function mix(one: number, other: number): number {
  let mixed = Math.imul(one + 1, 0x9e3779b1) ^ Math.imul(other + 1, 0x85ebca77);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 1;
}
