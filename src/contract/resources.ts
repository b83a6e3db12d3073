import { type Extension, extensions, stillExtensions } from './image-formats.ts';
import type { QueryKind } from './media-query.ts';

interface ResourceRow {
  /** Path template of the contract; the suffix of a placeholder determines its kind. */
  readonly template: string;
  /** Image extensions of the path; `undefined` for attachments, which can have any file name, and for files. */
  readonly extensions: readonly Extension[] | undefined;
  readonly fileExtensions: readonly string[] | undefined;
  /** Type of the response, if the bytes do not determine it. */
  readonly contentType: string | undefined;
  readonly query: QueryKind;
  /** Template of the key: the path without an image extension. `undefined` for bundled and external media. */
  readonly originKey: string | undefined;
  /** Whether the path has a signature, and no template parses it. */
  readonly isSigned: boolean;
}

const image = { extensions, query: 'image' } as const;
const still = { extensions: stillExtensions, query: 'image' } as const;
const sticker = { extensions: ['webp', 'gif'], query: 'sticker' } as const;
const file = { extensions: undefined, query: 'external' } as const;
const shipped = { extensions: ['png'], query: 'none' } as const;
const signed = { extensions: undefined, query: 'external', isSigned: true } as const;
const theme = {
  fileExtensions: ['css'],
  contentType: 'text/css; charset=utf-8',
  query: 'file',
} as const;
const sound = { fileExtensions: ['mp3', 'ogg', 'm4a', 'wav'], query: 'file' } as const;

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

/** Additional resources with `COMPATIBILITY=fluxer` (contract §14). */
const platformRows = {
  theme: { path: '/themes/{theme_name}.{ext}', ...theme },
  'entrance sound': { path: '/entrance-sounds/{user_id}/{sound_name}.{ext}', ...sound },
  branding: { path: '/branding/{entity_name}/{branding_hash}.{ext}', ...image },
} as const;

const allRows = { ...rows, ...platformRows };

/** Table from which the client library derives its methods. */
export type ResourceTable = typeof allRows;

export type ResourceName = keyof typeof allRows;

export const resourceNames = Object.keys(rows) as readonly ResourceName[];

export const platformResourceNames = Object.keys(platformRows) as readonly ResourceName[];

const allNames: readonly ResourceName[] = [...resourceNames, ...platformResourceNames];

export const resourceRows = Object.fromEntries(
  allNames.map((name): [ResourceName, ResourceRow] => {
    const more = { extensions: undefined, fileExtensions: undefined, contentType: undefined };
    const { path: template, query, ...row } = { ...more, isSigned: false, ...allRows[name] };
    const isStored = query !== 'none' && !row.isSigned;
    const path = template.slice(1);
    const originKey = row.fileExtensions === undefined ? path.replace('.{ext}', '') : path;
    return [name, { ...row, template, query, originKey: isStored ? originKey : undefined }];
  }),
) as Readonly<Record<ResourceName, ResourceRow>>;

/** Contract §1: index 0 to 5. */
export const DEFAULT_AVATAR_COUNT = 6;

export type TemplateSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'placeholder'; readonly name: string; readonly hasExtension: boolean };

export interface Template {
  readonly resource: ResourceName;
  readonly segments: readonly TemplateSegment[];
}

export interface Resources {
  readonly pathTemplates: readonly Template[];
  /** Literal segments, which are not ids: `/avatars/avatars/3.png` is an unknown path, not an invalid id. */
  readonly reservedSegments: ReadonlySet<string>;
  readonly originKeyTemplates: readonly Template[];
  /** Whether parsing is lenient (`leniency.ts`), with attachments at any depth. */
  readonly isLenient: boolean;
  /** Top-level directories of the keys of originals, such as `avatars/`. */
  readonly keyRoots: readonly string[];
}

export const contractResources = /* @__PURE__ */ selectResources(resourceNames, false);

export const platformResources = /* @__PURE__ */ selectResources(allNames, true);

function selectResources(names: readonly ResourceName[], isLenient: boolean): Resources {
  const pathTemplates = names
    .filter((resource) => !resourceRows[resource].isSigned)
    .map((resource) => ({
      resource,
      segments: parseTemplate(resourceRows[resource].template.slice(1)),
    }));
  const literals = pathTemplates.flatMap(({ segments }) =>
    segments.flatMap((segment) => (segment.kind === 'literal' ? [segment.text] : [])),
  );
  const originKeys = names.flatMap((resource) => {
    const { originKey } = resourceRows[resource];
    return originKey === undefined ? [] : [{ resource, originKey }];
  });
  return {
    isLenient,
    pathTemplates,
    reservedSegments: new Set(literals),
    originKeyTemplates: originKeys.map(({ resource, originKey }) => ({
      resource,
      segments: parseTemplate(originKey),
    })),
    keyRoots: [...new Set(originKeys.flatMap(({ originKey }) => /^[^/]+\//.exec(originKey) ?? []))],
  };
}

function parseTemplate(template: string): TemplateSegment[] {
  return template.split('/').map((segment) => {
    const [, name, extension] = /^\{(\w+)\}(\.\{ext\})?$/.exec(segment) ?? [];
    return name === undefined
      ? { kind: 'literal', text: segment }
      : { kind: 'placeholder', name, hasExtension: extension !== undefined };
  });
}

export function fillTemplate(template: string, find: (name: string) => string): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => find(name));
}

/** Contract §1. */
const MAX_SNOWFLAKE = 2n ** 64n - 1n;

/** Includes the prefix `a_` (contract §1). */
const MAX_HASH_LENGTH = 128;

/** In bytes of UTF-8 (contract §1). */
const MAX_FILENAME_BYTES = 255;

export type PathValueKind = 'snowflake' | 'hash' | 'name' | 'filename';

/** Syntax of a value, for checks and documentation. */
interface PathValueSyntax {
  /** Source of an ECMAScript regular expression with the flag `u`, which matches the complete value. */
  readonly pattern: string;
  /** Maximum length in bytes of UTF-8, which a pattern cannot count. */
  readonly maxBytes?: number;
  readonly description: string;
  readonly example: string;
}

export const pathValueSyntaxes = {
  snowflake: {
    pattern: `^(?:${patternUpTo(MAX_SNOWFLAKE)})$`,
    description: `A decimal integer from 0 to ${MAX_SNOWFLAKE} without sign or leading zero.`,
    example: '1471234567890123456',
  },
  hash: {
    pattern: `^(?!a_$)[A-Za-z0-9_-]{1,${MAX_HASH_LENGTH}}$`,
    description: `1 to ${MAX_HASH_LENGTH} characters of A-Z a-z 0-9 _ -. A leading a_ marks an animated original and is not part of its key.`,
    example: 'a_0123456789abcdef',
  },
  name: {
    pattern: `^[A-Za-z0-9_-]{1,${MAX_HASH_LENGTH}}$`,
    description: `1 to ${MAX_HASH_LENGTH} characters of A-Z a-z 0-9 _ -.`,
    example: 'midnight',
  },
  filename: {
    // Without \p{Cc}, which many tools for OpenAPI do not support.
    pattern: '^(?!\\.{1,2}$)[^/\\\\\\x00-\\x1f\\x7f-\\x9f]+$',
    maxBytes: MAX_FILENAME_BYTES,
    description: `1 to ${MAX_FILENAME_BYTES} bytes of UTF-8 after decoding, without slash, backslash or control character; not . or ..`,
    example: 'photo.png',
  },
} as const satisfies Record<PathValueKind, PathValueSyntax>;

const snowflake = new RegExp(pathValueSyntaxes.snowflake.pattern, 'u');
const hash = new RegExp(pathValueSyntaxes.hash.pattern, 'u');
const name = new RegExp(pathValueSyntaxes.name.pattern, 'u');

/** Returns the kind of `{filename}`, `{…_name}` or `{…_hash}`; others are snowflakes. */
export function kindOfPathValue(name: string): PathValueKind {
  if (name === 'filename') return 'filename';
  if (name.endsWith('_name')) return 'name';
  return name.endsWith('_hash') ? 'hash' : 'snowflake';
}

/** Returns the error in a placeholder's value, as a sentence; `undefined` if the value is valid. */
export function findPathValueFault(placeholder: string, value: string): string | undefined {
  const kind = kindOfPathValue(placeholder);
  switch (kind) {
    case 'filename':
      return findFilenameFault(value);
    case 'hash':
    case 'name':
      return (kind === 'hash' ? hash : name).test(value)
        ? undefined
        : `Expected 1 to ${MAX_HASH_LENGTH} characters of A-Z a-z 0-9 _ -.`;
    case 'snowflake':
      return snowflake.test(value)
        ? undefined
        : `Expected a decimal integer from 0 to ${MAX_SNOWFLAKE} without sign or leading zero.`;
  }
}

/** Has a message for each kind of error; a test compares it with the pattern above. */
function findFilenameFault(value: string): string | undefined {
  const bytes = new TextEncoder().encode(value).length;
  if (bytes < 1 || bytes > MAX_FILENAME_BYTES) {
    return `Expected 1 to ${MAX_FILENAME_BYTES} bytes of UTF-8 but received ${bytes}.`;
  }
  if (value === '.' || value === '..') return 'Expected a file name, not a directory.';
  if (/[/\\\p{Cc}]/u.test(value)) return 'Expected no slash, backslash or control character.';
  return undefined;
}

/** Returns a pattern for integers from 0 to a limit: fewer digits, or a smaller digit after an equal prefix. */
function patternUpTo(limit: bigint): string {
  const digits = [...limit.toString()].map(Number);
  const smaller = digits.flatMap((digit, position) => {
    const min = position === 0 ? 1 : 0;
    if (digit <= min) return [];
    const rest = digits.length - position - 1;
    const range = digit - 1 === min ? `${min}` : `[${min}-${digit - 1}]`;
    return [`${digits.slice(0, position).join('')}${range}${rest > 0 ? `[0-9]{${rest}}` : ''}`];
  });
  return ['0', `[1-9][0-9]{0,${digits.length - 2}}`, ...smaller, limit.toString()].join('|');
}
