import { ASSET_WIDTHS_PX } from '../../src/contract/media-query.ts';
import type { Random } from '../harness/random.ts';
import type { Question } from './exchange.ts';
import { isAttachment, type Original } from './originals.ts';

/** A request of the load, and what a right response looks like. */
export interface Shot extends Question {
  /** Whether there is, or might be, an original behind it. */
  readonly needsOrigin: boolean;
  /** Statuses that are right while the origin is well and nothing is overloaded. */
  readonly expected: readonly number[];
  /** What it may cost; a refusal under overload is right for renders alone. */
  readonly render: 'none' | 'light' | 'heavy';
  /** The body of a 200 or 206, where it is known beforehand. */
  readonly readBody?: (() => Buffer) | undefined;
}

/** A GET that is read to its end and gets an original, or what is made of it, unless something else is said. */
export function createShot(path: string, changes: Partial<Shot> = {}): Shot {
  return {
    method: 'GET',
    path,
    headers: {},
    manner: { kind: 'reads' },
    needsOrigin: true,
    expected: [200],
    render: 'none',
    ...changes,
  };
}

const STILL = {
  formats: ['webp', 'webp', 'webp', 'jpg', 'png', 'gif'],
  mostPx: 1024,
  rest: '',
};
const ANIMATION = { formats: ['webp', 'gif'], mostPx: 320, rest: '&animated=true' };
const QUALITIES = ['high', 'high', 'high', 'low', 'lossless'];

/** One of the many ways to ask for an image. */
export function imagePath(original: Original, to: 'still' | 'animation', random: Random): string {
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

/** The way in which a popular image is asked for again and again. */
export function popularPath(original: Original, widthPx: 128 | 256): string {
  return isAttachment(original)
    ? `${targetOf(original)}?width=${widthPx}&format=webp`
    : `${targetOf(original)}.webp?size=${widthPx}`;
}

/** An original by its path: of an attachment, all of it; of an asset, without the extension. */
function targetOf(original: Original): string {
  const segments = original.key.split('/').map(encodeURIComponent);
  const last = segments.pop() ?? '';
  // Clients know an animated asset by its prefix; emojis, stickers and file names have none.
  const isHash = /^(avatars|icons|banners|splashes|embed-splashes|guilds)\//.test(original.key);
  const name = isHash && original.kind === 'animation' ? `a_${last}` : last;
  return `/${[...segments, name].join('/')}`;
}

/** Stickers are webp or gif; embed splashes are never gif. */
function nearestExtension({ key }: Original, format: string): string {
  if (key.startsWith('stickers/')) return format === 'gif' ? 'gif' : 'webp';
  if (key.startsWith('embed-splashes/') && format === 'gif') return 'png';
  return format;
}

/** A file as it is, to its end. */
export function fileShot(file: Original, changes: Partial<Shot> = {}): Shot {
  return createShot(targetOf(file), { readBody: file.read, ...changes });
}

/** A range, the status of its response, and the body. */
type Form = readonly [range: string, status: number, readBody: Shot['readBody']];

/** A part of a file, in one of the forms that a `Range` header may have (RFC 9110 §14.1.2). */
export function rangeShot(file: Original, random: Random): Shot {
  const { sizeBytes } = file;
  const first = random.integer(0, sizeBytes - 1);
  const last = Math.min(sizeBytes - 1, first + Math.round(random.spread(1, 1_000_000)));
  const length = random.integer(1, Math.min(sizeBytes, 200_000));
  const suffix = (): Buffer => file.read().subarray(sizeBytes - length);
  const middle = (): Buffer => file.read().subarray(first, last + 1);
  const [range, status, readBody] = random.pick<Form>([
    [`${first}-${last}`, 206, middle],
    [`${sizeBytes - length}-`, 206, suffix],
    [`-${length}`, 206, suffix],
    // Several ranges: all of it.
    ['0-0,2-3', 200, file.read],
    [`${sizeBytes}-`, 416, undefined],
  ]);
  return fileShot(file, { headers: { range: `bytes=${range}` }, expected: [status], readBody });
}

/** Any transform of a file that means harm; what must not happen is anything else than these. */
export function hostileShot(original: Original, random: Random): Shot {
  const harmed = { render: 'heavy', expected: [200, 415, 422, 504] } as const;
  if (isAttachment(original) && random.next() < 0.2) return fileShot(original, harmed);
  const to = random.pick(['still', 'still', 'animation'] as const);
  return createShot(imagePath(original, to, random), harmed);
}

/** What no client should send, with the status that the contract has for it. */
const BAD_REQUESTS: readonly (readonly [path: string, status: number, method?: Shot['method']])[] =
  [
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
  ];

/** One of the requests above. */
export function badShot(random: Random): Shot {
  const [path, status, method = 'GET'] = random.pick(BAD_REQUESTS);
  return createShot(path, { method, needsOrigin: false, expected: [status] });
}

/** Something that is not in the bucket. */
export function unknownShot(random: Random): Shot {
  const id = random.integer(1, 2 ** 40);
  const path = random.pick([
    `/avatars/${id}/nothing.webp`,
    `/emojis/${id}.webp`,
    `/attachments/1/${id}/nothing.bin`,
  ]);
  return createShot(path, { expected: [404] });
}

/** One of the six default avatars, or one of none. */
export function defaultAvatarShot(random: Random): Shot {
  const index = random.integer(0, 7);
  const expected = [index < 6 ? 200 : 404];
  return createShot(`/avatars/${index}.png`, { needsOrigin: false, expected });
}
