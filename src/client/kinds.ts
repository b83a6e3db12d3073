/** Types of the methods that build URLs, derived from the table of resources. */

import type { Extension, Quality } from '../contract/image-formats.ts';
import type { ASSET_WIDTHS_PX, QueryKind } from '../contract/media-query.ts';
import type { ResourceName, ResourceTable } from '../contract/resources.ts';

/** Width that `size` accepts, in pixels. */
export type Size = (typeof ASSET_WIDTHS_PX)[number];

/** A snowflake. A number cannot hold its 64 bits. */
export type Id = string | bigint;

/** Kinds of media with a method of `MediaUrls`; URLs of external media come from the platform's API. */
export type Kind = Exclude<ResourceName, 'external media' | 'default avatar'>;

/** Parameters of pictures whose format is in the path. */
export interface AssetOptions<Format extends string = Extension> {
  /** Width in pixels; omit for 128, or for a sticker's own width. */
  readonly size?: Size | undefined;
  /** Extension of the path; omit for `webp`. */
  readonly format?: Format | undefined;
  /** Omit for `high`; for a sticker, `lossless`. */
  readonly quality?: Quality | undefined;
  /** Whether an animation is kept; omit for `false`, for a sticker `true`. A `.gif` always keeps its animation. */
  readonly animated?: boolean | undefined;
}

/** Parameters of attachments and of external media; without any, the response is the original. */
export interface AttachmentOptions {
  /** Maximum width in pixels, 1 to 4096. With a height, the picture is cropped to their ratio. */
  readonly width?: number | undefined;
  /** Maximum height in pixels, 1 to 4096. */
  readonly height?: number | undefined;
  /** Format of the response. For a video, it requests a poster frame. */
  readonly format?: Extension | undefined;
  /** Omit for `lossless`, or for the poster of a video `high`. */
  readonly quality?: Quality | undefined;
  /** Whether an animation is kept; omit for `false`. */
  readonly animated?: boolean | undefined;
}

/** Extension of a file that is served unchanged. */
interface FileOptions<Format extends string> {
  readonly format: Format;
}

/** Names of the methods of kinds; all others are the kind in camel case. */
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

/** Arguments for the placeholders of the paths; a placeholder that is not listed gets its type from its suffix. */
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

/** Options for each set of parameters. */
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

/** Arguments of the method of a kind. */
export type KindArguments<K extends Kind> = [
  ...PathArguments<ResourceTable[K]['path']>,
  ...OptionArguments<FormatOf<ResourceTable[K]>>[ResourceTable[K]['query'] & QueryKind],
];

/** One method for each kind, which returns a URL. */
export type KindMethods = {
  readonly [K in Kind as MethodName<K>]: (...values: KindArguments<K>) => string;
};
