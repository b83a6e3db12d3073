import { get } from '../harness/exchange.ts';
import { type Random, WeightedChoice, zipf } from '../harness/random.ts';
import { badShot, defaultAvatarShot, unknownShot } from './bad-requests.ts';
import { fileShot, leaveBodyShot, rangeShot, slowShot } from './file-shots.ts';
import type { Original, Originals } from './originals.ts';
import {
  animationPath,
  imageShot,
  isAttachment,
  type Purpose,
  popularPath,
  type Shot,
  stillPath,
  targetOf,
} from './shot.ts';

/** How often each kind of request is made, in shares of 100. */
const WEIGHTS: Readonly<Record<Purpose, number>> = {
  'popular image': 33,
  'new still': 20,
  'new animation': 3,
  file: 6,
  range: 7,
  condition: 8,
  head: 4,
  'leaves in mid-render': 4,
  'leaves in mid-body': 2,
  'slow reader': 1,
  hostile: 4,
  unknown: 2,
  'bad request': 4,
  'default avatar': 2,
};

/** In a burst, this share of the requests are animations; the others are stills. */
const BURST_ANIMATIONS = 0.2;

/** Exponent of the popularity; measured for images of the web, it is between 0.6 and 1. */
const ZIPF_EXPONENT = 0.9;

/** A file that no buffer on its way takes whole, so that it matters how its reader behaves. */
const LARGE_BYTES = 300_000;

/** Validators of what was received, by path; filled by those who receive. */
export type KnownTags = ReadonlyMap<
  string,
  { readonly etag: string; readonly lastModified: string | undefined }
>;

/** The mixed load: decides what is asked next. Each client brings its own random numbers. */
export class LoadMix {
  readonly #originals: Originals;
  readonly #popular: readonly { readonly original: Original; readonly path: string }[];
  readonly #popularity: WeightedChoice;
  readonly #largeFiles: readonly Original[];
  readonly #purposes = Object.keys(WEIGHTS) as Purpose[];
  readonly #purpose = new WeightedChoice(Object.values(WEIGHTS));
  readonly #tags: KnownTags;

  /** @param random decides which originals are the popular ones */
  constructor(originals: Originals, random: Random, tags: KnownTags) {
    this.#originals = originals;
    this.#tags = tags;
    this.#largeFiles = originals.files.filter(({ sizeBytes }) => sizeBytes >= LARGE_BYTES);
    const images = random.shuffle([...originals.stills, ...originals.animations]);
    this.#popular = images.map((original, rank) => ({
      original,
      path: popularPath(original, rank % 2 === 0 ? 128 : 256),
    }));
    this.#popularity = zipf(images.length, ZIPF_EXPONENT);
  }

  /** The next request of a client. */
  next(random: Random): Shot {
    const purpose = this.#purposes[this.#purpose.next(random)] ?? 'popular image';
    return this.#shot(purpose, random);
  }

  /** One request of a burst: something that has to be rendered. */
  nextOfBurst(random: Random): Shot {
    return this.#shot(random.next() < BURST_ANIMATIONS ? 'new animation' : 'new still', random);
  }

  #shot(purpose: Purpose, random: Random): Shot {
    const { files, hostile } = this.#originals;
    switch (purpose) {
      case 'popular image':
        return this.#popularShot(random);
      case 'new still':
        return this.#stillShot(random);
      case 'new animation':
        return this.#animationShot(random);
      case 'file':
        return fileShot(random.pick(files));
      case 'range':
        return rangeShot(random.pick(files), random);
      case 'condition':
        return this.#conditionShot(random);
      case 'head': {
        const shot = this.#popularShot(random);
        return { ...shot, purpose, question: { ...shot.question, method: 'HEAD' } };
      }
      case 'leaves in mid-render':
        return this.#leaveRenderShot(random);
      case 'leaves in mid-body':
        return leaveBodyShot(random.pick(this.#largeFiles), random);
      case 'slow reader':
        return slowShot(this.#largeFiles, random);
      case 'hostile':
        return hostileShot(random.pick(hostile), random);
      case 'unknown':
        return unknownShot(random);
      case 'bad request':
        return badShot(random);
      case 'default avatar':
        return defaultAvatarShot(random);
    }
  }

  #popularShot(random: Random): Shot {
    const { original, path } = this.#popular[this.#popularity.next(random)] ?? fail();
    return imageShot('popular image', original, path, 'light');
  }

  #stillShot(random: Random): Shot {
    const original = random.pick(this.#originals.stills);
    return imageShot('new still', original, stillPath(original, random), 'light');
  }

  #animationShot(random: Random): Shot {
    const original = random.pick(this.#originals.animations);
    return imageShot('new animation', original, animationPath(original, random), 'heavy');
  }

  /** Of what was received before: it is current, or else the client has another state of it. */
  #conditionShot(random: Random): Shot {
    const shot = { ...this.#popularShot(random), purpose: 'condition' } as const;
    const { path } = shot.question;
    const known = this.#tags.get(path);
    if (known === undefined) return shot;
    const ask = (headers: Record<string, string>, status: number): Shot => ({
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

  #leaveRenderShot(random: Random): Shot {
    const shot = random.next() < 0.7 ? this.#stillShot(random) : this.#animationShot(random);
    return {
      ...shot,
      purpose: 'leaves in mid-render',
      question: { ...shot.question, manner: { kind: 'leaves', afterMs: random.spread(1, 300) } },
    };
  }
}

/** Any transform of a file that means harm; what must not happen is anything else than these. */
function hostileShot(original: Original, random: Random): Shot {
  const isBare = isAttachment(original) && random.next() < 0.2;
  const path = isBare
    ? targetOf(original)
    : random.pick([stillPath, stillPath, animationPath])(original, random);
  return {
    ...imageShot('hostile', original, path, 'heavy'),
    expected: [200, 415, 422, 504],
    readBody: isBare ? original.read : undefined,
  };
}

function fail(): never {
  throw new Error('There is no such rank.');
}
