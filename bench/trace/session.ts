import { type Random, WeightedChoice } from '../harness/random.ts';
import { assumptions } from './assumptions.ts';
import type { Catalogue } from './catalogue.ts';
import type { Population } from './population.ts';
import { DEVICE_WEIGHTS, type Usage, variantsOf } from './usages.ts';
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
        this.#ask('invite', this.#population.splashOf(guild, this.#nowS));
        this.#ask('guild list', this.#population.iconOf(guild, this.#nowS));
        break;
      default:
        this.#openChannel(guild);
    }
    return this.#asked;
  }

  #openChannel(guild: number): void {
    const random = this.#random;
    this.#repeat(assumptions.authorsPerChannelView, () => this.#showAuthor(guild));
    this.#repeat(assumptions.emojisPerChannelView, () => {
      const isForeign = random.next() < assumptions.foreignEmojiShare;
      const home = isForeign ? this.#drawGuild() : guild;
      this.#ask('emoji', this.#population.drawEmoji(home, this.#nowS, random));
    });
    this.#repeat(assumptions.stickersPerChannelView, () =>
      this.#ask('sticker', this.#population.drawSticker(guild, this.#nowS, random)),
    );
    this.#scroll(guild);
  }

  #showAuthor(guild: number): void {
    const random = this.#random;
    const member = this.#population.drawMember(guild, random);
    if (random.next() < assumptions.memberAvatarShare) {
      this.#ask('member author', this.#population.memberAvatarOf(member, this.#nowS));
      return;
    }
    const avatar = this.#population.avatarOf(member, this.#nowS);
    this.#ask('author', avatar);
    if (random.next() < assumptions.hoverShare) this.#ask('hovered author', avatar);
  }

  #scroll(guild: number): void {
    const random = this.#random;
    const feed = this.#population.drawChannel(guild, random);
    this.#repeat(assumptions.attachmentsPerChannelView, () => {
      const attachment = feed.at(feed.drawDepth(random));
      const deletedS = this.#catalogue.originals[attachment]?.deletedS ?? 0;
      if (deletedS <= this.#nowS && random.next() >= assumptions.staleShare) return;
      this.#ask('thumbnail', attachment);
      if (random.next() < assumptions.fullViewShare) this.#ask('full view', attachment);
    });
    this.#repeat(this.#asked.size * assumptions.uploadsPerRequest, () => {
      const posted = feed.post(this.#nowS, random);
      this.#ask('thumbnail', posted);
    });
  }

  #start(): void {
    this.#repeat(assumptions.guildListLength, () =>
      this.#ask('guild list', this.#population.iconOf(this.#drawGuild(), this.#nowS)),
    );
  }

  #openProfile(guild: number): void {
    const member = this.#population.drawMember(guild, this.#random);
    this.#ask('profile avatar', this.#population.avatarOf(member, this.#nowS));
    this.#ask('profile banner', this.#population.bannerOf(guild, this.#nowS));
  }

  #drawGuild(): number {
    return guildRanks.next(this.#population.guilds, this.#random);
  }

  #ask(usage: Usage, original: number): void {
    const variant = variantsOf[usage][this.#device] ?? 0;
    this.#asked.add(this.#catalogue.rendering(original, variant));
  }

  /** Does something a random number of times, `mean` at the mean. */
  #repeat(mean: number, act: () => void): void {
    const times = Math.floor(this.#random.exponential(mean) + this.#random.next());
    for (let time = 0; time < times; time += 1) act();
  }
}
