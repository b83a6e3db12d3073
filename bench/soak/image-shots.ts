import { ASSET_WIDTHS_PX } from '../../src/contract/media-query.ts';
import type { Random } from '../harness/random.ts';
import { get } from './exchange.ts';
import type { Original } from './originals.ts';
import type { Shot } from './shot.ts';

const STILL_WIDTHS_PX = ASSET_WIDTHS_PX.filter((width) => width <= 1024);
const ANIMATION_WIDTHS_PX = ASSET_WIDTHS_PX.filter((width) => width <= 320);
const QUALITIES = ['high', 'high', 'high', 'low', 'lossless'];
const STILL_FORMATS = ['webp', 'webp', 'webp', 'jpg', 'png', 'gif'];

/** A plain GET that renders, or finds what was rendered. */
export function imageShot(original: Original, path: string, render: Shot['render']): Shot {
  return { question: get(path), originKey: original.key, expected: [200], render };
}

/** One of the many ways to ask for a still image. */
export function stillPath(original: Original, random: Random): string {
  const format = random.pick(STILL_FORMATS);
  const quality = random.pick(QUALITIES);
  if (isAttachment(original)) {
    const box = `width=${random.integer(16, 1024)}&height=${random.integer(16, 1024)}`;
    return `${targetOf(original)}?${box}&format=${format}&quality=${quality}`;
  }
  const ext = nearestExtension(original, format);
  return `${targetOf(original)}.${ext}?size=${random.pick(STILL_WIDTHS_PX)}&quality=${quality}`;
}

/** One of the many ways to ask for an animation. */
export function animationPath(original: Original, random: Random): string {
  const format = random.pick(['webp', 'gif']);
  const quality = random.pick(QUALITIES);
  if (isAttachment(original)) {
    const width = random.integer(16, 320);
    return `${targetOf(original)}?width=${width}&format=${format}&quality=${quality}&animated=true`;
  }
  const size = random.pick(ANIMATION_WIDTHS_PX);
  const ext = nearestExtension(original, format);
  return `${targetOf(original)}.${ext}?size=${size}&quality=${quality}&animated=true`;
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
