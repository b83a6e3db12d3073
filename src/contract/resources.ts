import type { Extension } from './image-formats.ts';

/** Which query schema a resource has (spec §2); `none` reads no parameter at all. */
export type QueryKind = 'image' | 'sticker' | 'external' | 'none';

interface ResourceRow {
  /** Path template as in the contract. `{…_id}` is a snowflake, `{…_hash}` a hash. */
  readonly template: string;
  /** Extensions the path may end with; an attachment's file name is free. */
  readonly extensions: readonly Extension[] | undefined;
  /** Key of the original in the origin; a hash goes in without its `a_`. None: it is shipped with us. */
  readonly originKey: string | undefined;
  readonly query: QueryKind;
}

const animatable = ['png', 'jpg', 'jpeg', 'webp', 'gif'] as const;
const still = ['png', 'jpg', 'jpeg', 'webp'] as const;

/** Every resource of the contract, one row each: the table of spec §1. */
export const mediaResources = {
  'user avatar': {
    template: '/avatars/{user_id}/{avatar_hash}.{ext}',
    extensions: animatable,
    originKey: 'avatars/{user_id}/{avatar_hash}',
    query: 'image',
  },
  'guild icon': {
    template: '/icons/{guild_id}/{icon_hash}.{ext}',
    extensions: animatable,
    originKey: 'icons/{guild_id}/{icon_hash}',
    query: 'image',
  },
  'guild banner': {
    template: '/banners/{guild_id}/{banner_hash}.{ext}',
    extensions: animatable,
    originKey: 'banners/{guild_id}/{banner_hash}',
    query: 'image',
  },
  'guild splash': {
    template: '/splashes/{guild_id}/{splash_hash}.{ext}',
    extensions: animatable,
    originKey: 'splashes/{guild_id}/{splash_hash}',
    query: 'image',
  },
  'guild embed splash': {
    template: '/embed-splashes/{guild_id}/{embed_splash_hash}.{ext}',
    extensions: still,
    originKey: 'embed-splashes/{guild_id}/{embed_splash_hash}',
    query: 'image',
  },
  'custom emoji': {
    template: '/emojis/{emoji_id}.{ext}',
    extensions: animatable,
    originKey: 'emojis/{emoji_id}',
    query: 'image',
  },
  sticker: {
    template: '/stickers/{sticker_id}.{ext}',
    extensions: ['webp', 'gif'],
    originKey: 'stickers/{sticker_id}',
    query: 'sticker',
  },
  'member avatar': {
    template: '/guilds/{guild_id}/users/{user_id}/avatars/{avatar_hash}.{ext}',
    extensions: animatable,
    originKey: 'guilds/{guild_id}/users/{user_id}/avatars/{avatar_hash}',
    query: 'image',
  },
  'member banner': {
    template: '/guilds/{guild_id}/users/{user_id}/banners/{banner_hash}.{ext}',
    extensions: animatable,
    originKey: 'guilds/{guild_id}/users/{user_id}/banners/{banner_hash}',
    query: 'image',
  },
  attachment: {
    template: '/attachments/{channel_id}/{attachment_id}/{filename}',
    extensions: undefined,
    originKey: 'attachments/{channel_id}/{attachment_id}/{filename}',
    query: 'external',
  },
  'default avatar': {
    template: '/avatars/{index}.{ext}',
    extensions: ['png'],
    originKey: undefined,
    query: 'none',
  },
} as const satisfies Record<string, ResourceRow>;

/** Name of a resource, as the contract calls it. */
export type ResourceName = keyof typeof mediaResources;

/** The rows under one type, for code that treats all resources alike. */
export const resourceRows: Readonly<Record<ResourceName, ResourceRow>> = mediaResources;

/** First folders of the keys of originals, `avatars/` for example, each once: all originals are below them. */
export const originFolders: readonly string[] = [
  ...new Set(
    Object.values(resourceRows).flatMap(
      ({ originKey }) => originKey?.slice(0, originKey.indexOf('/') + 1) ?? [],
    ),
  ),
];
