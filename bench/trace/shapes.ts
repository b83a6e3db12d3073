import type { SourceFormat } from '../../src/contract/image-formats.ts';

/** What an original looks like, as far as its cost and its size depend on it. */
export interface Shape {
  readonly format: SourceFormat;
  readonly widthPx: number;
  readonly heightPx: number;
  /** More than one: an animation. */
  readonly frames: number;
  /** Of an original without metadata, which may be passed through. */
  readonly isClean: boolean;
  /** Share among the originals of its kind, beside the sum of all. */
  readonly weight: number;
}

const still = (format: SourceFormat, widthPx: number, heightPx: number, weight: number): Shape => ({
  format,
  widthPx,
  heightPx,
  frames: 1,
  isClean: format !== 'jpeg',
  weight,
});

const film = (
  format: 'gif' | 'webp',
  [widthPx, heightPx, frames]: readonly [number, number, number],
  weight: number,
): Shape => ({ format, widthPx, heightPx, frames, isClean: true, weight });

const portraits = [
  still('png', 512, 512, 25),
  still('jpeg', 512, 512, 20),
  still('png', 256, 256, 15),
  still('jpeg', 1024, 1024, 15),
  still('webp', 512, 512, 10),
  still('png', 1024, 1024, 5),
  film('gif', [128, 128, 30], 4),
  film('gif', [256, 256, 40], 4),
  film('webp', [256, 256, 24], 2),
];

/**
 * Kinds of content that a trace asks for; the others of the contract are rare, and look like these.
 * Assumed, not measured: what clients upload after their own cropping. A tenth of avatars and icons, a
 * quarter of emojis and half of the stickers move.
 */
export const shapesOf = {
  'user avatar': portraits,
  'member avatar': portraits,
  'guild icon': portraits,
  'guild banner': [
    still('png', 960, 540, 35),
    still('jpeg', 1200, 675, 35),
    still('webp', 960, 540, 15),
    film('gif', [600, 338, 40], 15),
  ],
  'guild splash': [
    still('jpeg', 1920, 1080, 50),
    still('png', 1920, 1080, 40),
    still('webp', 1600, 900, 10),
  ],
  'custom emoji': [
    still('png', 128, 128, 55),
    still('webp', 128, 128, 12),
    still('png', 96, 96, 8),
    film('gif', [128, 128, 20], 20),
    film('webp', [128, 128, 16], 5),
  ],
  sticker: [
    still('png', 320, 320, 50),
    film('webp', [320, 320, 40], 35),
    film('gif', [320, 320, 30], 15),
  ],
  attachment: [
    still('jpeg', 4032, 3024, 25),
    still('jpeg', 1920, 1080, 25),
    still('png', 1920, 1080, 25),
    still('png', 1170, 2532, 10),
    still('webp', 1280, 720, 8),
    film('gif', [498, 280, 60], 7),
  ],
} satisfies Readonly<Record<string, readonly Shape[]>>;

export type ContentKind = keyof typeof shapesOf;

export const contentKinds = Object.keys(shapesOf) as readonly ContentKind[];
