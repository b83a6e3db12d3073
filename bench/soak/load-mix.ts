import { type Random, WeightedChoice } from '../harness/random.ts';
import { ZipfRanks } from '../trace/zipf.ts';
import { get } from './exchange.ts';
import type { Original, Originals } from './originals.ts';
import {
  badShot,
  defaultAvatarShot,
  fileShot,
  leaveBodyShot,
  rangeShot,
  slowShot,
  unknownShot,
} from './plain-shots.ts';
import {
  imagePath,
  imageShot,
  isAttachment,
  type PurposedShot,
  popularPath,
  type Shot,
  targetOf,
} from './shots.ts';

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

/** The mixed load: decides what is asked next. Each client brings its own random numbers. */
export interface LoadMix {
  /** The next request of a client. */
  readonly next: (random: Random) => PurposedShot;
  /** One request of a burst: something that has to be rendered. */
  readonly nextOfBurst: (random: Random) => PurposedShot;
}

/**
 * @param random decides which originals are the popular ones
 * @param tags by path; filled by those who receive
 */
export function createLoadMix(
  { stills, animations, files, hostile }: Originals,
  random: Random,
  tags: ReadonlyMap<string, KnownTag>,
): LoadMix {
  const large = files.filter(({ sizeBytes }) => sizeBytes >= LARGE_BYTES);
  // The most popular first.
  const popular = random
    .shuffle([...stills, ...animations])
    .map((original, rank) => popularPath(original, rank % 2 === 0 ? 128 : 256));
  const popularShot = (of: Random): Shot =>
    imageShot(popular[popularity.next(popular.length, of)] ?? '/', 'light');
  const stillShot = (of: Random): Shot =>
    imageShot(imagePath(of.pick(stills), 'still', of), 'light');
  const animationShot = (of: Random): Shot =>
    imageShot(imagePath(of.pick(animations), 'animation', of), 'heavy');
  const headShot = (of: Random): Shot => {
    const shot = popularShot(of);
    return { ...shot, question: { ...shot.question, method: 'HEAD' } };
  };
  const leaveRenderShot = (of: Random): Shot => {
    const shot = of.next() < 0.7 ? stillShot(of) : animationShot(of);
    const manner = { kind: 'leaves', afterMs: of.spread(1, 300) } as const;
    return { ...shot, question: { ...shot.question, manner } };
  };
  /** Of what was received before: it is current, or else the client has another state of it. */
  const conditionShot = (of: Random): Shot => {
    const shot = popularShot(of);
    const { path } = shot.question;
    const known = tags.get(path);
    if (known === undefined) return shot;
    const ask = (headers: Record<string, string>, status: number): Shot => ({
      ...shot,
      question: get(path, headers),
      expected: [status],
    });
    const form = of.next();
    if (form < 0.6) return ask({ 'if-none-match': known.etag }, 304);
    if (form < 0.8) return ask({ 'if-none-match': '"another", W/"state"' }, 200);
    if (known.lastModified === undefined) return shot;
    return ask({ 'if-modified-since': known.lastModified }, 304);
  };

  /** How often each is asked for, in shares of 100, and how. */
  const rows: Readonly<Record<string, readonly [weight: number, make: (of: Random) => Shot]>> = {
    'popular image': [33, popularShot],
    'new still': [20, stillShot],
    'new animation': [3, animationShot],
    file: [6, (of) => fileShot(of.pick(files))],
    range: [7, (of) => rangeShot(of.pick(files), of)],
    condition: [8, conditionShot],
    head: [4, headShot],
    'leaves in mid-render': [4, leaveRenderShot],
    'leaves in mid-body': [2, (of) => leaveBodyShot(of.pick(large), of)],
    'slow reader': [1, (of) => slowShot(large, of)],
    hostile: [4, (of) => hostileShot(of.pick(hostile), of)],
    unknown: [2, unknownShot],
    'bad request': [4, badShot],
    'default avatar': [2, defaultAvatarShot],
  };
  const choice = new WeightedChoice(Object.values(rows).map(([weight]) => weight));
  const makeShot = (purpose: string, of: Random): PurposedShot => {
    const [, make] = rows[purpose] ?? [];
    if (make === undefined) throw new Error(`There is no ${purpose} in the mix.`);
    return { purpose, ...make(of) };
  };
  return {
    next: (of) => makeShot(Object.keys(rows)[choice.next(of)] ?? '', of),
    nextOfBurst: (of) => makeShot(of.next() < BURST_ANIMATIONS ? 'new animation' : 'new still', of),
  };
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
