import type { ContentKind } from './shapes.ts';

/** What a client runs on; it decides which sizes it asks for. */
export const devices = ['desktop', 'sharp desktop', 'mobile', 'bot'] as const;

/** Shares of sessions by device, in the order of `devices`; assumed. */
export const DEVICE_WEIGHTS = [25, 35, 37, 3];

/** A place of a client where pictures are shown. */
export type Usage =
  | 'author'
  | 'member author'
  | 'hovered author'
  | 'guild list'
  | 'profile avatar'
  | 'profile banner'
  | 'invite'
  | 'emoji'
  | 'sticker'
  | 'thumbnail'
  | 'full view';

interface UsageRow {
  readonly kind: ContentKind;
  /** File ending and query per device, in the order of `devices`; an attachment has no ending. */
  readonly asks: readonly [string, string, string, string];
}

/**
 * Which rendering each device asks for: webp everywhere but by bots, in twice the size where pixels are
 * half as large. Assumed; widths are those that the contract lists.
 */
export const usages: Readonly<Record<Usage, UsageRow>> = {
  author: {
    kind: 'user avatar',
    asks: ['.webp?size=40', '.webp?size=80', '.webp?size=80', '.png?size=128'],
  },
  'member author': {
    kind: 'member avatar',
    asks: ['.webp?size=40', '.webp?size=80', '.webp?size=80', '.png?size=128'],
  },
  'hovered author': {
    kind: 'user avatar',
    asks: [
      '.webp?size=40&animated=true',
      '.webp?size=80&animated=true',
      '.webp?size=80&animated=true',
      '.gif?size=128',
    ],
  },
  'guild list': {
    kind: 'guild icon',
    asks: ['.webp?size=48', '.webp?size=96', '.webp?size=96', '.png?size=128'],
  },
  'profile avatar': {
    kind: 'user avatar',
    asks: [
      '.webp?size=80&animated=true',
      '.webp?size=160&animated=true',
      '.webp?size=240&animated=true',
      '.png?size=1024',
    ],
  },
  'profile banner': {
    kind: 'guild banner',
    asks: ['.webp?size=300', '.webp?size=600', '.webp?size=480', '.png?size=1024'],
  },
  invite: {
    kind: 'guild splash',
    asks: ['.webp?size=512', '.webp?size=1024', '.webp?size=640', '.jpg?size=2048'],
  },
  emoji: {
    kind: 'custom emoji',
    asks: [
      '.webp?size=24&animated=true',
      '.webp?size=48&animated=true',
      '.webp?size=48&animated=true',
      '.gif?size=48',
    ],
  },
  sticker: {
    kind: 'sticker',
    asks: ['.webp?size=160', '.webp?size=320', '.webp?size=320', '.webp'],
  },
  thumbnail: {
    kind: 'attachment',
    asks: [
      '?format=webp&quality=high&width=400',
      '?format=webp&quality=high&width=640',
      '?format=webp&quality=high&width=400',
      '',
    ],
  },
  'full view': {
    kind: 'attachment',
    asks: ['', '', '?format=webp&quality=high&width=1280', ''],
  },
};

/** All renderings a trace may ask for; those of one kind that are spelled alike are one. */
export interface Variant {
  readonly kind: ContentKind;
  /** What follows the hash or id in the URL. */
  readonly ask: string;
}

/** Every variant, once; traces name them by their index. */
export const variants: readonly Variant[] = listVariants();

/** Index in `variants` per usage and device, in the order of `devices`. */
export const variantsOf: Readonly<Record<Usage, readonly number[]>> = indexVariants();

function listVariants(): Variant[] {
  const known = new Map<string, Variant>();
  for (const { kind, asks } of Object.values(usages)) {
    for (const ask of asks) known.set(`${kind}${ask}`, { kind, ask });
  }
  return [...known.values()];
}

function indexVariants(): Record<Usage, readonly number[]> {
  const entries = Object.entries(usages).map(([usage, { kind, asks }]) => [
    usage,
    asks.map((ask) =>
      variants.findIndex((variant) => variant.kind === kind && variant.ask === ask),
    ),
  ]);
  return Object.fromEntries(entries) as Record<Usage, readonly number[]>;
}
