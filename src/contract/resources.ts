import { type Extension, extensions, stillExtensions } from './image-formats.ts';
import type { QueryKind } from './media-query.ts';

interface ResourceRow {
  /** Path template as in the contract. `{…_id}` is a snowflake, `{…_hash}` a hash. */
  readonly template: string;
  /** Extensions the path may end with; an attachment's file name is free. */
  readonly extensions: readonly Extension[] | undefined;
  readonly query: QueryKind;
  /**
   * Key of the original in the origin: the path without its extension, and hashes without their `a_`. `undefined` for
   * resources that are shipped with us or are on another site.
   */
  readonly originKey: string | undefined;
  /** Whether the path is signed, and is read as a whole, not by its segments. */
  readonly isSigned: boolean;
}

const image = { extensions, query: 'image' } as const;
const still = { extensions: stillExtensions, query: 'image' } as const;
const sticker = { extensions: ['webp', 'gif'], query: 'sticker' } as const;
const file = { extensions: undefined, query: 'external' } as const;
const shipped = { extensions: ['png'], query: 'none' } as const;
const signed = { extensions: undefined, query: 'external', isSigned: true } as const;

/** The resources of the contract, one row each: the table of contract §1. */
const rows = {
  'user avatar': { path: '/avatars/{user_id}/{avatar_hash}.{ext}', ...image },
  'guild icon': { path: '/icons/{guild_id}/{icon_hash}.{ext}', ...image },
  'guild banner': { path: '/banners/{guild_id}/{banner_hash}.{ext}', ...image },
  'guild splash': { path: '/splashes/{guild_id}/{splash_hash}.{ext}', ...image },
  'guild embed splash': { path: '/embed-splashes/{guild_id}/{embed_splash_hash}.{ext}', ...still },
  'custom emoji': { path: '/emojis/{emoji_id}.{ext}', ...image },
  sticker: { path: '/stickers/{sticker_id}.{ext}', ...sticker },
  'member avatar': {
    path: '/guilds/{guild_id}/users/{user_id}/avatars/{avatar_hash}.{ext}',
    ...image,
  },
  'member banner': {
    path: '/guilds/{guild_id}/users/{user_id}/banners/{banner_hash}.{ext}',
    ...image,
  },
  attachment: { path: '/attachments/{channel_id}/{attachment_id}/{filename}', ...file },
  'default avatar': { path: '/avatars/{index}.{ext}', ...shipped },
  'external media': { path: '/external/{signature}/{target}', ...signed },
} as const;

/** Name of a resource, as the contract calls it. */
export type ResourceName = keyof typeof rows;

export const resourceNames = Object.keys(rows) as readonly ResourceName[];

/** The rows with their origin keys, by name. */
export const resourceRows = Object.fromEntries(
  resourceNames.map((name) => {
    const { path: template, extensions, query } = rows[name];
    const isSigned = 'isSigned' in rows[name];
    const isStored = query !== 'none' && !isSigned;
    const originKey = isStored ? template.slice(1).replace('.{ext}', '') : undefined;
    return [name, { template, extensions, originKey, query, isSigned } satisfies ResourceRow];
  }),
) as Readonly<Record<ResourceName, ResourceRow>>;

/** Number of default avatars (contract §1: index 0 to 5). */
export const DEFAULT_AVATAR_COUNT = 6;

/** A segment of a path, as the table of resources writes it. */
export type TemplateSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'placeholder'; readonly name: string; readonly hasExtension: boolean };

/** A path or a key of a resource as segments. */
export interface Template {
  readonly resource: ResourceName;
  readonly segments: readonly TemplateSegment[];
}

/** Templates of the paths that are read by their segments. */
export const pathTemplates: readonly Template[] = resourceNames
  .filter((resource) => !resourceRows[resource].isSigned)
  .map((resource) => ({
    resource,
    segments: parseTemplate(resourceRows[resource].template.slice(1)),
  }));

/** Templates of the keys of originals. */
export const originKeyTemplates: readonly Template[] = resourceNames.flatMap((resource) => {
  const { originKey } = resourceRows[resource];
  return originKey === undefined ? [] : [{ resource, segments: parseTemplate(originKey) }];
});

/** First folders of the keys of originals, such as `avatars/`, each once: all originals are below them. */
export const originFolders: readonly string[] = [
  ...new Set(
    resourceNames.flatMap((name) => resourceRows[name].originKey?.match(/^[^/]+\//) ?? []),
  ),
];

function parseTemplate(template: string): TemplateSegment[] {
  return template.split('/').map((segment) => {
    const [, name, extension] = /^\{(\w+)\}(\.\{ext\})?$/.exec(segment) ?? [];
    return name === undefined
      ? { kind: 'literal', text: segment }
      : { kind: 'placeholder', name, hasExtension: extension !== undefined };
  });
}

/** Replaces the placeholders of a template by values. */
export function fillTemplate(template: string, find: (name: string) => string): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => find(name));
}
