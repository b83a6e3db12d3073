import { ASSET_WIDTHS_PX } from '../../src/contract/media-query.ts';
import type { Random } from '../harness/random.ts';
import type { createOriginals, Original } from './originals.ts';

/** Request of the load, and its expected response. */
export interface Shot {
  /** Row of the report. */
  readonly purpose: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Time after which, or bytes of the body with which, the client hangs up. */
  readonly leavesAfterMs?: number;
  readonly leavesAfterBytes?: number;
  /** Pause of a slow reader after each chunk of the body. */
  readonly pauseMs?: number;
  readonly needsOriginal: boolean;
  /** Statuses that are correct while the storage works and the service is not overloaded. */
  readonly expected: readonly number[];
  /** Cost of the response; under overload, the service may reject only renders. */
  readonly render: 'none' | 'light' | 'heavy';
  /** Body of a 200 or 206. Omit if it is not known in advance. */
  readonly body?: Buffer | undefined;
}

type Draft = Omit<Shot, 'purpose'>;

/** Drafts a GET that reads an original, or a rendering of one, to its end; `changes` replace properties. */
function draft(path: string, changes: Partial<Draft> = {}): Draft {
  return {
    ...{ method: 'GET', path, headers: {}, needsOriginal: true, expected: [200], render: 'none' },
    ...changes,
  };
}

const STILL = { formats: ['webp', 'webp', 'webp', 'jpg', 'png', 'gif'], mostPx: 1024, rest: '' };
const ANIMATION = { formats: ['webp', 'gif'], mostPx: 320, rest: '&animated=true' };
const QUALITIES = ['high', 'high', 'high', 'low', 'lossless'];

const isAttachment = ({ key }: Original): boolean => key.startsWith('attachments/');

/** Returns one of the many paths of an image's renderings. */
function imagePath(original: Original, to: 'still' | 'animation', random: Random): string {
  const { formats, mostPx, rest } = to === 'still' ? STILL : ANIMATION;
  const format = random.pick(formats);
  const quality = random.pick(QUALITIES);
  if (isAttachment(original)) {
    const [width, height] = [random.integer(16, mostPx), random.integer(16, mostPx)];
    const box = to === 'still' ? `width=${width}&height=${height}` : `width=${width}`;
    return `${targetOf(original)}?${box}&format=${format}&quality=${quality}${rest}`;
  }
  const size = random.pick(ASSET_WIDTHS_PX.filter((width) => width <= mostPx));
  const extension = nearestExtension(original, format);
  return `${targetOf(original)}.${extension}?size=${size}&quality=${quality}${rest}`;
}

/** Returns the path of a popular image that clients request repeatedly. */
function popularPath(original: Original, widthPx: 128 | 256): string {
  return isAttachment(original)
    ? `${targetOf(original)}?width=${widthPx}&format=webp`
    : `${targetOf(original)}.webp?size=${widthPx}`;
}

/** Returns the path of an attachment, or of an asset without the extension. */
function targetOf({ key, kind }: Original): string {
  const segments = key.split('/').map(encodeURIComponent);
  const last = segments.pop() ?? '';
  // The hash of an animated asset has a prefix; emojis, stickers and file names have none.
  const isHash = /^(avatars|icons|banners|splashes|embed-splashes|guilds)\//.test(key);
  return `/${[...segments, isHash && kind === 'animation' ? `a_${last}` : last].join('/')}`;
}

/** Stickers are WebP or GIF; embed splashes are never GIF. */
function nearestExtension({ key }: Original, format: string): string {
  if (key.startsWith('stickers/')) return format === 'gif' ? 'gif' : 'webp';
  return key.startsWith('embed-splashes/') && format === 'gif' ? 'png' : format;
}

/** Drafts a request for a part of a file, in one of the forms of a `Range` header (RFC 9110 §14.1.2). */
function draftRange(file: Original, random: Random): Draft {
  const { bytes } = file;
  const first = random.integer(0, bytes.length - 1);
  const last = Math.min(bytes.length - 1, first + Math.round(random.spread(1, 1_000_000)));
  const length = random.integer(1, Math.min(bytes.length, 200_000));
  const suffix = bytes.subarray(bytes.length - length);
  const [range, status, body] = random.pick<readonly [string, number, Buffer?]>([
    [`${first}-${last}`, 206, bytes.subarray(first, last + 1)],
    [`${bytes.length - length}-`, 206, suffix],
    [`-${length}`, 206, suffix],
    ['0-0,2-3', 200, bytes], // several ranges: the complete file
    [`${bytes.length}-`, 416],
  ]);
  return draft(targetOf(file), { headers: { range: `bytes=${range}` }, expected: [status], body });
}

/** Requests that need no original, most of them invalid, with their statuses by the contract. */
const PLAIN_REQUESTS: readonly (readonly [path: string, status: number, method?: string])[] = [
  ['/avatars/x/ab.bmp?size=63&quality=best', 400],
  ['/avatars/1/ab12.webp?size=128.0', 400],
  ['/avatars/1/ab12.webp?size=64&size=64', 400],
  ['/avatars/1/ab12.webp?animated=1', 400],
  ['/avatars/18446744073709551616/ab12.webp', 400],
  [`/avatars/1/${'a'.repeat(6_000)}.webp`, 400],
  ['/attachments/1/1/%ff.png?width=9999', 400],
  ['/attachments/1/1/..%2f..%2fetc%2fpasswd', 400],
  ['/stickers/1.png', 400],
  ['/', 404],
  ['/favicon.ico', 404],
  ['/embed/avatars/0.png', 404],
  ['/avatars/1/ab12.webp', 405, 'POST'],
  ['/avatars/1/ab12.webp', 405, 'DELETE'],
  ['/avatars/1/ab12.webp', 204, 'OPTIONS'],
  ['/avatars/0.png', 200],
  ['/avatars/6.png', 404], // six default avatars exist
];

/** Fraction of animations among the requests of a burst; the others are stills. */
const BURST_ANIMATIONS = 0.2;

/** Exponent of Zipf's law for popularity; studies of web images measured 0.6 to 1. */
const POPULARITY = 0.9;

/** Minimum size of a file that exceeds all buffers between service and client, so that a slow reader has an effect. */
const LARGE_BYTES = 300_000;
/** Larger files keep a slow reader longer than a test of slow readers needs. */
const LARGEST_SLOW_BYTES = 6_000_000;
const SLOW_READER_PAUSE_MS = 100;

/** Mixed load; each client has its own random numbers. */
export type LoadMix = ReturnType<typeof createLoadMix>;

/** Creates a mix. `random` selects popular originals; the caller fills `tags`: their received headers, by path. */
export function createLoadMix(
  { stills, animations, files, hostile }: ReturnType<typeof createOriginals>,
  random: Random,
  tags: ReadonlyMap<string, Headers>,
) {
  const large = files.filter(({ bytes }) => bytes.length >= LARGE_BYTES);
  const slow = large.filter(({ bytes }) => bytes.length < LARGEST_SLOW_BYTES);
  const popular = random
    .shuffle([...stills, ...animations])
    .map((original, rank) => popularPath(original, rank % 2 === 0 ? 128 : 256));
  const weights = popular.map((_, rank) => (rank + 1) ** -POPULARITY);
  const draftFile = (file: Original, changes: Partial<Draft> = {}): Draft =>
    draft(targetOf(file), { body: file.bytes, ...changes });
  const draftPopular = (of: Random): Draft =>
    draft(of.pickWeighted(popular, weights), { render: 'light' });
  const draftStill = (of: Random): Draft =>
    draft(imagePath(of.pick(stills), 'still', of), { render: 'light' });
  const draftAnimation = (of: Random): Draft =>
    draft(imagePath(of.pick(animations), 'animation', of), { render: 'heavy' });

  /** Drafts by purpose, each with its weight in the load. */
  const rows: Readonly<Record<string, readonly [weight: number, make: (of: Random) => Draft]>> = {
    'popular image': [33, draftPopular],
    'new still': [20, draftStill],
    'new animation': [3, draftAnimation],
    file: [6, (of) => draftFile(of.pick(files))],
    range: [7, (of) => draftRange(of.pick(files), of)],
    condition: [8, (of) => withCondition(draftPopular(of), tags, of)],
    head: [4, (of) => ({ ...draftPopular(of), method: 'HEAD' })],
    'leaves in mid-render': [
      4,
      (of) => {
        const shot = of.next() < 0.7 ? draftStill(of) : draftAnimation(of);
        return { ...shot, leavesAfterMs: of.spread(1, 300) };
      },
    ],
    'leaves in mid-body': [
      2,
      (of) => {
        const file = of.pick(large);
        return draftFile(file, { leavesAfterBytes: of.integer(1, file.bytes.length / 2) });
      },
    ],
    'slow reader': [1, (of) => draftFile(of.pick(slow), { pauseMs: SLOW_READER_PAUSE_MS })],
    hostile: [
      4,
      (of) => {
        const original = of.pick(hostile);
        const changes = { render: 'heavy', expected: [200, 415, 422, 504] } as const;
        const isWhole = isAttachment(original) && of.next() < 0.2;
        if (isWhole) return draftFile(original, changes);
        return draft(imagePath(original, of.pick(['still', 'still', 'animation']), of), changes);
      },
    ],
    unknown: [
      2,
      (of) => {
        const id = of.integer(1, 2 ** 40);
        const paths = [`avatars/${id}/nothing.webp`, `emojis/${id}.webp`, `attachments/1/${id}/no`];
        return draft(`/${of.pick(paths)}`, { expected: [404] });
      },
    ],
    'without an original': [
      6,
      (of) => {
        const [path, status, method = 'GET'] = of.pick(PLAIN_REQUESTS);
        return draft(path, { method, needsOriginal: false, expected: [status] });
      },
    ],
  };
  const purposes = Object.keys(rows);
  const loadWeights = Object.values(rows).map(([weight]) => weight);
  const create = (purpose: string, of: Random): Shot => {
    const [, make = draftPopular] = rows[purpose] ?? [];
    return { purpose, ...make(of) };
  };
  return {
    next: (of: Random) => create(of.pickWeighted(purposes, loadWeights), of),
    /** Creates a request that needs a render. */
    nextOfBurst: (of: Random) =>
      create(of.next() < BURST_ANIMATIONS ? 'new animation' : 'new still', of),
  };
}

/** Adds a condition with the validators of an earlier response, if there was one. */
function withCondition(shot: Draft, tags: ReadonlyMap<string, Headers>, of: Random): Draft {
  const known = tags.get(shot.path);
  const [etag, lastModified] = [known?.get('etag'), known?.get('last-modified')];
  if (!etag || !lastModified) return shot;
  const form = of.next();
  if (form < 0.6) return { ...shot, headers: { 'if-none-match': etag }, expected: [304] };
  if (form < 0.8) return { ...shot, headers: { 'if-none-match': '"another", W/"state"' } };
  return { ...shot, headers: { 'if-modified-since': lastModified }, expected: [304] };
}
