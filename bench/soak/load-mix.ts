import { type Random, WeightedChoice } from '../harness/random.ts';
import { ZipfRanks } from '../trace/zipf.ts';
import { badShot, defaultAvatarShot, unknownShot } from './bad-shots.ts';
import { get } from './exchange.ts';
import { fileShot, leaveBodyShot, rangeShot, slowShot } from './file-shots.ts';
import { imagePath, imageShot, isAttachment, popularPath, targetOf } from './image-shots.ts';
import type { Original, Originals } from './originals.ts';
import type { Purpose, PurposedShot, Shot } from './shot.ts';

/** In a burst, this share of the requests are animations; the others are stills. */
const BURST_ANIMATIONS = 0.2;

/** Exponent of the popularity; measured for images of the web, it is between 0.6 and 1. */
const popularity = new ZipfRanks(0.9);

/** A file that no buffer on its way takes whole, so that it matters how its reader behaves. */
const LARGE_BYTES = 300_000;

/** Validators of what was received. */
export interface KnownTag {
  readonly etag: string;
  readonly lastModified: string | undefined;
}

/** How often a kind of request is made, in shares of 100, and how. */
interface MixRow {
  readonly weight: number;
  readonly make: (random: Random) => Shot;
}

/** The mixed load: decides what is asked next. Each client brings its own random numbers. */
export class LoadMix {
  readonly #originals: Originals;
  /** Paths, the most popular first. */
  readonly #popular: readonly string[];
  readonly #tags: ReadonlyMap<string, KnownTag>;
  readonly #rows: Readonly<Record<Purpose, MixRow>>;
  readonly #purposes: readonly Purpose[];
  readonly #choice: WeightedChoice;

  /**
   * @param random decides which originals are the popular ones
   * @param tags by path; filled by those who receive
   */
  constructor(originals: Originals, random: Random, tags: ReadonlyMap<string, KnownTag>) {
    this.#originals = originals;
    this.#tags = tags;
    const images = random.shuffle([...originals.stills, ...originals.animations]);
    this.#popular = images.map((original, rank) => popularPath(original, rank % 2 ? 256 : 128));
    this.#rows = this.#describe();
    this.#purposes = Object.keys(this.#rows) as Purpose[];
    this.#choice = new WeightedChoice(Object.values(this.#rows).map(({ weight }) => weight));
  }

  /** The next request of a client. */
  next(random: Random): PurposedShot {
    return this.#make(this.#purposes[this.#choice.next(random)] ?? 'popular image', random);
  }

  /** One request of a burst: something that has to be rendered. */
  nextOfBurst(random: Random): PurposedShot {
    return this.#make(random.next() < BURST_ANIMATIONS ? 'new animation' : 'new still', random);
  }

  #make(purpose: Purpose, random: Random): PurposedShot {
    return { purpose, ...this.#rows[purpose].make(random) };
  }

  #describe(): Readonly<Record<Purpose, MixRow>> {
    const { files, hostile } = this.#originals;
    const large = files.filter(({ sizeBytes }) => sizeBytes >= LARGE_BYTES);
    return {
      'popular image': { weight: 33, make: (random) => this.#popularShot(random) },
      'new still': { weight: 20, make: (random) => this.#stillShot(random) },
      'new animation': { weight: 3, make: (random) => this.#animationShot(random) },
      file: { weight: 6, make: (random) => fileShot(random.pick(files)) },
      range: { weight: 7, make: (random) => rangeShot(random.pick(files), random) },
      condition: { weight: 8, make: (random) => this.#conditionShot(random) },
      head: { weight: 4, make: (random) => this.#headShot(random) },
      'leaves in mid-render': { weight: 4, make: (random) => this.#leaveRenderShot(random) },
      'leaves in mid-body': {
        weight: 2,
        make: (random) => leaveBodyShot(random.pick(large), random),
      },
      'slow reader': { weight: 1, make: (random) => slowShot(large, random) },
      hostile: { weight: 4, make: (random) => hostileShot(random.pick(hostile), random) },
      unknown: { weight: 2, make: unknownShot },
      'bad request': { weight: 4, make: badShot },
      'default avatar': { weight: 2, make: defaultAvatarShot },
    };
  }

  #popularShot(random: Random): Shot {
    const rank = popularity.next(this.#popular.length, random);
    return imageShot(this.#popular[rank] ?? '/', 'light');
  }

  #stillShot(random: Random): Shot {
    return imageShot(imagePath(random.pick(this.#originals.stills), 'still', random), 'light');
  }

  #animationShot(random: Random): Shot {
    const original = random.pick(this.#originals.animations);
    return imageShot(imagePath(original, 'animation', random), 'heavy');
  }

  /** Of what was received before: it is current, or else the client has another state of it. */
  #conditionShot(random: Random): Shot {
    const shot = this.#popularShot(random);
    const { path } = shot.question;
    const known = this.#tags.get(path);
    if (known === undefined) return shot;
    const ask = (headers: Record<string, string>, status: number) => ({
      ...shot,
      question: get(path, headers),
      expected: [status],
    });
    const form = random.next();
    if (form < 0.6) return ask({ 'if-none-match': known.etag }, 304);
    if (form < 0.8) return ask({ 'if-none-match': '"another", W/"state"' }, 200);
    return known.lastModified === undefined
      ? shot
      : ask({ 'if-modified-since': known.lastModified }, 304);
  }

  #headShot(random: Random): Shot {
    const shot = this.#popularShot(random);
    return { ...shot, question: { ...shot.question, method: 'HEAD' } };
  }

  #leaveRenderShot(random: Random): Shot {
    const shot = random.next() < 0.7 ? this.#stillShot(random) : this.#animationShot(random);
    const manner = { kind: 'leaves', afterMs: random.spread(1, 300) } as const;
    return { ...shot, question: { ...shot.question, manner } };
  }
}

/** Any transform of a file that means harm; what must not happen is anything else than these. */
function hostileShot(original: Original, random: Random): Shot {
  const isBare = isAttachment(original) && random.next() < 0.2;
  const path = isBare
    ? targetOf(original)
    : imagePath(original, random.pick(['still', 'still', 'animation']), random);
  return {
    ...imageShot(path, 'heavy'),
    expected: [200, 415, 422, 504],
    readBody: isBare ? original.read : undefined,
  };
}
