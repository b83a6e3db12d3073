import { createWeightedChoice, createZipfRanks, type Random } from '../harness/random.ts';
import { assumptions, DAY_S } from './assumptions.ts';
import type { Catalogue } from './catalogue.ts';
import type { ChannelFeed, Message } from './channel-feed.ts';
import type { Population } from './population.ts';
import { DEVICE_WEIGHTS, type PlacedUsage, type Usage, usages } from './usages.ts';

const deviceChoice = createWeightedChoice(DEVICE_WEIGHTS);
const guildRanks = createZipfRanks(assumptions.guildExponent);
const sessionChoice = createWeightedChoice(Object.values(assumptions.sessions));
const sessionKinds = Object.keys(assumptions.sessions) as (keyof typeof assumptions.sessions)[];

/** What a client opens; guild 0 is the most read one. */
export interface Visit {
  readonly guild: number;
  readonly kind: (typeof sessionKinds)[number];
}

/**
 * One client for a moment: it opens a channel, a profile, an invite, or starts, and asks for all that it
 * shows at once, each picture once.
 *
 * @param visit what is opened, where that is not drawn
 * @returns the renderings that it asks for; their number varies
 */
export function runSession(
  population: Population,
  catalogue: Catalogue,
  random: Random,
  nowS: number,
  visit?: Visit,
): ReadonlySet<number> {
  const device = deviceChoice(random);
  const asked = new Set<number>();
  const askFor = (usage: Usage, original: number): void => {
    asked.add(catalogue.rendering(original, usages[usage].asks[device] ?? ''));
  };
  /** For what is in a place of the usage's kind now. */
  const ask = (usage: PlacedUsage, place: number): void =>
    askFor(usage, population.originalAt(usages[usage].kind, place, nowS));
  const drawGuild = (): number => guildRanks(population.guilds, random);
  /** Does something a random number of times, `mean` at the mean. */
  const repeat = (mean: number, act: () => void): void => {
    const times = Math.floor(random.exponential(mean) + random.next());
    for (let time = 0; time < times; time += 1) act();
  };

  const writeMessage = (guild: number): Message => {
    const emojis: number[] = [];
    repeat(assumptions.emojisPerMessage, () => {
      const isForeign = random.next() < assumptions.foreignEmojiShare;
      emojis.push(population.drawEmoji(isForeign ? drawGuild() : guild, random));
    });
    return { author: population.drawMember(guild, random), emojis };
  };
  const showAuthor = (author: number): void => {
    if (random.next() < assumptions.memberAvatarShare) {
      ask('member author', author);
      return;
    }
    ask('author', author);
    if (random.next() < assumptions.hoverShare) ask('hovered author', author);
  };
  /** Of the clients that would show an attachment, how many ask for it. */
  const askedShare = (attachment: number): number => {
    const { createdS = 0, deletedS = 0 } = catalogue.originals[attachment] ?? {};
    if (deletedS <= nowS) return assumptions.staleShare;
    const ageDays = (nowS - createdS) / DAY_S;
    return Math.max(assumptions.firstSeenShare, 1 / (1 + ageDays / assumptions.seenAfterDays));
  };
  const scroll = (feed: ChannelFeed): void => {
    repeat(assumptions.attachmentsPerChannelView, () => {
      const attachment = feed.scroll(random);
      if (random.next() >= askedShare(attachment)) return;
      askFor('thumbnail', attachment);
      if (random.next() < assumptions.fullViewShare) askFor('full view', attachment);
    });
    repeat(asked.size * assumptions.uploadsPerRequest, () =>
      askFor('thumbnail', feed.post(nowS, random)),
    );
  };
  const openChannel = (guild: number): void => {
    const feed = population.drawChannel(guild, random);
    repeat(assumptions.messagesPerChannelView, () => feed.say(writeMessage(guild)));
    const shown = Math.ceil(random.exponential(assumptions.messagesShown));
    for (const { author, emojis } of feed.latest(shown)) {
      showAuthor(author);
      for (const place of emojis) ask('emoji', place);
    }
    repeat(assumptions.stickersPerChannelView, () =>
      ask('sticker', population.drawSticker(guild, random)),
    );
    scroll(feed);
  };

  const guild = visit?.guild ?? drawGuild();
  const kind = visit?.kind ?? sessionKinds[sessionChoice(random)];
  if (kind === 'start') {
    repeat(assumptions.guildListLength, () => ask('guild list', drawGuild()));
  } else if (kind === 'profile') {
    ask('profile avatar', population.drawMember(guild, random));
    ask('profile banner', guild);
  } else if (kind === 'invite') {
    ask('invite', guild);
    ask('guild list', guild);
  } else openChannel(guild);
  return asked;
}
