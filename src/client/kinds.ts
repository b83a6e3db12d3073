/** Types of the methods that build URLs, derived from the table of resources. */

import type { Extension, Quality } from '../contract/image-formats.ts';
import type { ASSET_WIDTHS_PX, QueryKind } from '../contract/media-query.ts';
import type { ResourceName, ResourceTable } from '../contract/resources.ts';

/** Value of `size`: a width in pixels. */
export type Size = (typeof ASSET_WIDTHS_PX)[number];

/** Snowflake. Its 64 bits do not fit into a number. */
export type Id = string | bigint;

/** Kind of media with a method of `MediaUrls`. The platform's API returns the URLs of external media. */
export type Kind = Exclude<ResourceName, 'external media' | 'default avatar'>;

/** Parameters of images whose format is in the path. */
export interface AssetOptions<Format extends string = Extension> {
  /** Width in pixels; omit for 128, or for the original width of a sticker. */
  readonly size?: Size | undefined;
  /** Extension of the path; omit for `webp`. */
  readonly format?: Format | undefined;
  /** Omit for `high`; stickers default to `lossless`. */
  readonly quality?: Quality | undefined;
  /** Whether to keep an animation; omit for `false`. Stickers default to `true`, and a `.gif` always keeps it. */
  readonly animated?: boolean | undefined;
}

/** Parameters of attachments and external media; without any, the response is the original. */
export interface AttachmentOptions {
  /** Maximum width in pixels, 1 to 4096. With a height, the image is cropped to their ratio. */
  readonly width?: number | undefined;
  /** Maximum height in pixels, 1 to 4096. */
  readonly height?: number | undefined;
  /** Format of the response. For a video, it requests a poster frame. */
  readonly format?: Extension | undefined;
  /** Omit for `lossless`; posters of videos default to `high`. */
  readonly quality?: Quality | undefined;
  /** Whether to keep an animation; omit for `false`. */
  readonly animated?: boolean | undefined;
}

interface FileOptions<Format extends string> {
  /** Extension of the file, which is served unchanged. */
  readonly format: Format;
}

/** Names of methods that are not the kind in camel case. */
export const shortNames = {
  'user avatar': 'avatar',
  'guild embed splash': 'embedSplash',
  'custom emoji': 'emoji',
} as const satisfies Partial<Record<Kind, string>>;

type CamelCase<Text extends string> = Text extends `${infer Word} ${infer Rest}`
  ? `${Word}${Capitalize<CamelCase<Rest>>}`
  : Text;
type MethodName<K extends Kind> = K extends keyof typeof shortNames
  ? (typeof shortNames)[K]
  : CamelCase<K>;

/** Arguments for placeholders in paths; the suffix of others determines their type. */
interface NamedArguments {
  user_id: [userId: Id];
  guild_id: [guildId: Id];
  emoji_id: [emojiId: Id];
  sticker_id: [stickerId: Id];
  channel_id: [channelId: Id];
  attachment_id: [attachmentId: Id];
  filename: [filename: string];
}
type ArgumentOf<Name extends string> = Name extends keyof NamedArguments
  ? NamedArguments[Name]
  : Name extends `${string}_hash`
    ? [hash: string]
    : Name extends `${string}_name`
      ? [name: string]
      : [id: Id];
type PathArguments<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? [...(Name extends 'ext' ? [] : ArgumentOf<Name>), ...PathArguments<Rest>]
  : [];

interface OptionArguments<Format extends string> {
  image: [options?: AssetOptions<Format>];
  sticker: [options?: AssetOptions<Format>];
  external: [options?: AttachmentOptions];
  file: [options: FileOptions<Format>];
  none: [];
}
type FormatOf<Row> = Row extends { readonly extensions: readonly (infer Format extends string)[] }
  ? Format
  : Row extends { readonly fileExtensions: readonly (infer Format extends string)[] }
    ? Format
    : never;

/** Arguments of the method for a kind. */
export type KindArguments<K extends Kind> = [
  ...PathArguments<ResourceTable[K]['path']>,
  ...OptionArguments<FormatOf<ResourceTable[K]>>[ResourceTable[K]['query'] & QueryKind],
];

/** Methods that return a URL, one for each kind. */
export type KindMethods = {
  readonly [K in Kind as MethodName<K>]: (...values: KindArguments<K>) => string;
};
