import type { ContentKind, Shape } from './shapes.ts';

/**
 * What a client runs on decides which sizes it asks for: shares of sessions on a desktop, on a sharp one, on a mobile
 * device, and of bots; assumed. Devices are named by their places in here.
 */
export const DEVICE_WEIGHTS = [25, 35, 37, 3];

/** What follows the hash or id of an asset, per device. */
const sizes = (widthsPx: readonly number[], animated = ''): string[] =>
  widthsPx.map((widthPx) => `.webp?size=${widthPx}${animated}`);

const ANIMATED = '&animated=true';
const AVATAR = [...sizes([40, 80, 80]), '.png?size=128'];
const thumbnail = (widthPx: number): string => `?format=webp&quality=high&width=${widthPx}`;

/**
 * The places of a client where pictures are shown, and which rendering each device asks for: webp everywhere but by
 * bots, in twice the size where pixels are half as large. Assumed; widths are those that the contract lists. An
 * attachment has no ending.
 */
export const usages = {
  author: { kind: 'user avatar', asks: AVATAR },
  'member author': { kind: 'member avatar', asks: AVATAR },
  'hovered author': {
    kind: 'user avatar',
    asks: [...sizes([40, 80, 80], ANIMATED), '.gif?size=128'],
  },
  'guild list': { kind: 'guild icon', asks: [...sizes([48, 96, 96]), '.png?size=128'] },
  'profile avatar': {
    kind: 'user avatar',
    asks: [...sizes([80, 160, 240], ANIMATED), '.png?size=1024'],
  },
  'profile banner': { kind: 'guild banner', asks: [...sizes([300, 600, 480]), '.png?size=1024'] },
  invite: { kind: 'guild splash', asks: [...sizes([512, 1024, 640]), '.jpg?size=2048'] },
  emoji: { kind: 'custom emoji', asks: [...sizes([24, 48, 48], ANIMATED), '.gif?size=48'] },
  sticker: { kind: 'sticker', asks: [...sizes([160, 320, 320]), '.webp'] },
  thumbnail: { kind: 'attachment', asks: [thumbnail(400), thumbnail(640), thumbnail(400), ''] },
  'full view': { kind: 'attachment', asks: ['', '', thumbnail(1280), ''] },
} as const satisfies Readonly<
  Record<string, { readonly kind: ContentKind; readonly asks: readonly string[] }>
>;

/** A place of a client where pictures are shown. */
export type Usage = keyof typeof usages;

/** One of them that shows what has a place of its own. */
export type PlacedUsage = Exclude<Usage, 'thumbnail' | 'full view'>;

/** Ids of a trace begin here, so that they have as many digits as those of the platform. */
const FIRST_ID = 1_471_000_000_000_000_000n;

/** Path of each kind; contract §1. */
const pathForms: Readonly<Record<ContentKind, (id: string, hash: string) => string>> = {
  'user avatar': (id, hash) => `/avatars/${id}/${hash}`,
  'member avatar': (id, hash) => `/guilds/${id}/users/${id}/avatars/${hash}`,
  'guild icon': (id, hash) => `/icons/${id}/${hash}`,
  'guild banner': (id, hash) => `/banners/${id}/${hash}`,
  'guild splash': (id, hash) => `/splashes/${id}/${hash}`,
  'custom emoji': (id) => `/emojis/${id}`,
  sticker: (id) => `/stickers/${id}`,
  attachment: (id) => `/attachments/${id}/${id}/image-${id}`,
};

/**
 * The request target of a rendering.
 *
 * @param original number of the original, which its id is made from
 * @param ask what follows the hash or id: `.webp?size=80`
 */
export function formatTarget(
  kind: ContentKind,
  { frames }: Pick<Shape, 'frames'>,
  original: number,
  ask: string,
): string {
  const hash = `${frames > 1 ? 'a_' : ''}${original.toString(16).padStart(32, '0')}`;
  return pathForms[kind](String(FIRST_ID + BigInt(original)), hash) + ask;
}
