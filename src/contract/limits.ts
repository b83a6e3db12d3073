/**
 * Hard numbers of the contract: no configuration changes them. The configurable ones are in
 * `config.ts`.
 */

/** Largest snowflake: 64 bits, unsigned (reference, "Snowflake identifiers"). */
export const MAX_SNOWFLAKE = 2n ** 64n - 1n;

/** Longest hash, its `a_` prefix included (spec §1). */
export const MAX_HASH_LENGTH = 128;

/** Longest attachment file name in bytes of UTF-8 (spec §1). */
export const MAX_FILENAME_BYTES = 255;

/** Number of default avatars (spec §1: index 0 to 5). */
export const DEFAULT_AVATAR_COUNT = 6;

/** Widths that `size` may ask for, in pixels (spec §2). */
export const ASSET_WIDTHS_PX = [
  16, 20, 22, 24, 28, 32, 40, 44, 48, 56, 60, 64, 80, 96, 100, 128, 160, 240, 256, 300, 320, 480,
  512, 600, 640, 1024, 1280, 1536, 2048, 3072, 4096,
] as const;

/** Width of an asset when no `size` is given, in pixels (spec §2). */
export const DEFAULT_ASSET_WIDTH_PX = 128;

/** Largest `width` and `height` of an attachment, in pixels (spec §2). */
export const MAX_ATTACHMENT_EDGE_PX = 4096;
