import { createWeightedChoice, createZipfRanks, type Random } from '../harness/random.ts';
import type { Originals } from './originals.ts';
import {
  badShot,
  createShot,
  defaultAvatarShot,
  fileShot,
  hostileShot,
  imagePath,
  popularPath,
  rangeShot,
  type Shot,
  unknownShot,
} from './shots.ts';

/** In a burst, this share of the requests are animations; the others are stills. */
const BURST_ANIMATIONS = 0.2;

/** Exponent of the popularity; measured for images of the web, it is between 0.6 and 1. */
const popularity = createZipfRanks(0.9);

/** A file that no buffer on its way takes whole, so that it matters how its reader behaves. */
const LARGE_BYTES = 300_000;

/** Larger ones take a slow reader longer than is needed to see that it holds nothing up. */
const LARGEST_SLOW_BYTES = 6_000_000;

/** A slow reader takes a piece (some 64 KiB) and then rests so long, in milliseconds. */
const REST_MS = 100;

export interface PurposedShot extends Shot {
  /** Why it is made: a row of the report. */
  readonly purpose: string;
}

export type LoadMix = ReturnType<typeof createLoadMix>;

/**
 * The mixed load; each client brings its own random numbers.
 *
 * @param random decides which originals are the popular ones
 * @param tags headers with the validators of what was received, by path; filled by those who receive
 */
export function createLoadMix(
  { stills, animations, files, hostile }: Originals,
  random: Random,
  tags: ReadonlyMap<string, Headers>,
) {
  const large = files.filter(({ sizeBytes }) => sizeBytes >= LARGE_BYTES);
  const slow = large.filter(({ sizeBytes }) => sizeBytes < LARGEST_SLOW_BYTES);
  // The most popular first.
  const popular = random
    .shuffle([...stills, ...animations])
    .map((original, rank) => popularPath(original, rank % 2 === 0 ? 128 : 256));
  const popularShot = (of: Random): Shot =>
    createShot(popular[popularity(popular.length, of)] ?? '/', { render: 'light' });
  const stillShot = (of: Random): Shot =>
    createShot(imagePath(of.pick(stills), 'still', of), { render: 'light' });
  const animationShot = (of: Random): Shot =>
    createShot(imagePath(of.pick(animations), 'animation', of), { render: 'heavy' });
  const leaveRenderShot = (of: Random): Shot => ({
    ...(of.next() < 0.7 ? stillShot(of) : animationShot(of)),
    manner: { kind: 'leaves', afterMs: of.spread(1, 300) },
  });
  const leaveBodyShot = (of: Random): Shot => {
    const file = of.pick(large);
    const afterBytes = of.integer(1, Math.ceil(file.sizeBytes / 2));
    return fileShot(file, { manner: { kind: 'leaves body', afterBytes } });
  };
  /** Of what was received before: it is current, or else the client has another state of it. */
  const conditionShot = (of: Random): Shot => {
    const shot = popularShot(of);
    const known = tags.get(shot.path);
    const [etag, lastModified] = [known?.get('etag'), known?.get('last-modified')];
    if (!etag || !lastModified) return shot;
    const ask = (headers: Shot['headers'], status: number) => ({
      ...shot,
      headers,
      expected: [status],
    });
    const form = of.next();
    if (form < 0.6) return ask({ 'if-none-match': etag }, 304);
    if (form < 0.8) return ask({ 'if-none-match': '"another", W/"state"' }, 200);
    return ask({ 'if-modified-since': lastModified }, 304);
  };

  /** How often each is asked for, in shares of 100, and how. */
  const rows: Readonly<Record<string, readonly [weight: number, make: (of: Random) => Shot]>> = {
    'popular image': [33, popularShot],
    'new still': [20, stillShot],
    'new animation': [3, animationShot],
    file: [6, (of) => fileShot(of.pick(files))],
    range: [7, (of) => rangeShot(of.pick(files), of)],
    condition: [8, conditionShot],
    head: [4, (of) => ({ ...popularShot(of), method: 'HEAD' })],
    'leaves in mid-render': [4, leaveRenderShot],
    'leaves in mid-body': [2, leaveBodyShot],
    'slow reader': [
      1,
      (of) => fileShot(of.pick(slow), { manner: { kind: 'dawdles', pauseMs: REST_MS } }),
    ],
    hostile: [4, (of) => hostileShot(of.pick(hostile), of)],
    unknown: [2, unknownShot],
    'bad request': [4, badShot],
    'default avatar': [2, defaultAvatarShot],
  };
  const choice = createWeightedChoice(Object.values(rows).map(([weight]) => weight));
  const makeShot = (purpose: string, of: Random): PurposedShot => {
    const [, make] = rows[purpose] ?? [];
    if (make === undefined) throw new Error(`There is no ${purpose} in the mix.`);
    return { purpose, ...make(of) };
  };
  return {
    next: (of: Random) => makeShot(Object.keys(rows)[choice(of)] ?? '', of),
    /** One request of a burst: something that has to be rendered. */
    nextOfBurst: (of: Random) =>
      makeShot(of.next() < BURST_ANIMATIONS ? 'new animation' : 'new still', of),
  };
}
