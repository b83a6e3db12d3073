import type { ContentKind } from './shapes.ts';

/** What a client runs on: it decides which sizes it asks for. Shares of sessions, assumed. */
const devices = { desktop: 25, 'sharp desktop': 35, mobile: 37, bot: 3 };

/** Shares of sessions by device; devices are named by their places in here. */
export const DEVICE_WEIGHTS = Object.values(devices);

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

/** A rendering that a trace may ask for. */
export interface Variant {
  readonly kind: ContentKind;
  /** What follows the hash or id in the URL. */
  readonly ask: string;
}

const asked = Object.values(usages).flatMap(({ kind, asks }) =>
  asks.map((ask): Variant => ({ kind, ask })),
);

/** Every variant, once; traces name them by their index. */
export const variants: readonly Variant[] = [
  ...new Map(asked.map((variant) => [variant.kind + variant.ask, variant])).values(),
];

/** Index in `variants` of what a usage asks for on a device. */
export function variantOf(usage: Usage, device: number): number {
  const { kind, asks } = usages[usage];
  return variants.findIndex((variant) => variant.kind === kind && variant.ask === asks[device]);
}
