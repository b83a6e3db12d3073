import { ASSET_WIDTHS_PX } from '../../src/contract/media-query.ts';
import type { Random } from '../harness/random.ts';
import { get, type Question } from './exchange.ts';
import type { Original } from './originals.ts';

/** A request of the load, and what a right response looks like. */
export interface Shot {
  readonly question: Question;
  /** Whether there is, or might be, an original behind it. */
  readonly needsOrigin: boolean;
  /** Statuses that are right while the origin is well and nothing is overloaded. */
  readonly expected: readonly number[];
  /** What it may cost; a refusal under overload is right for renders alone. */
  readonly render: 'none' | 'light' | 'heavy';
  /** The body of a 200 or 206, where it is known beforehand. */
  readonly readBody?: (() => Buffer) | undefined;
}

/** One of the mix. */
export interface PurposedShot extends Shot {
  /** Why it is made: a row of the report. */
  readonly purpose: string;
}

const STILL = {
  formats: ['webp', 'webp', 'webp', 'jpg', 'png', 'gif'],
  mostPx: 1024,
  rest: '',
};
const ANIMATION = { formats: ['webp', 'gif'], mostPx: 320, rest: '&animated=true' };
const QUALITIES = ['high', 'high', 'high', 'low', 'lossless'];

/** A plain GET that renders, or finds what was rendered. */
export function imageShot(path: string, render: Shot['render']): Shot {
  return { question: get(path), needsOrigin: true, expected: [200], render };
}

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
export function targetOf(original: Original): string {
  const segments = original.key.split('/').map(encodeURIComponent);
  const last = segments.pop() ?? '';
  // Clients know an animated asset by its prefix; emojis, stickers and file names have none.
  const isHash = /^(avatars|icons|banners|splashes|embed-splashes|guilds)\//.test(original.key);
  const name = isHash && original.kind === 'animation' ? `a_${last}` : last;
  return `/${[...segments, name].join('/')}`;
}

/** Whether transforms are asked for by parameters, and not by extension. */
export function isAttachment({ key }: Original): boolean {
  return key.startsWith('attachments/');
}

/** Stickers are webp or gif; embed splashes are never gif. */
function nearestExtension({ key }: Original, format: string): string {
  if (key.startsWith('stickers/')) return format === 'gif' ? 'gif' : 'webp';
  if (key.startsWith('embed-splashes/') && format === 'gif') return 'png';
  return format;
}
