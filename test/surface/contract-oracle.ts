/**
 * A second implementation of the contract, written only from its text: the meaning of a request target, or its faults.
 * It shares no code with the service, so that the two do not make the same mistake.
 */

export type Quality = 'high' | 'low' | 'lossless';
export type Format = 'jpeg' | 'png' | 'webp' | 'gif';

/** Canonical request: URLs with equal ones return the same bytes. */
export interface Canonical {
  readonly originKey: string;
  readonly widthPx: number | undefined;
  readonly heightPx: number | undefined;
  readonly format: Format | undefined;
  /** Empty for a missing parameter, whose default differs between posters and pictures. */
  readonly quality: Quality | '';
  readonly animated: boolean;
  /** The unchanged original. */
  readonly passthrough: boolean;
}

/** Verdict of the contract on a request target. */
export type Verdict =
  | { readonly kind: 'unknown path' }
  /** Names of the path parts and parameters at fault, sorted. */
  | { readonly kind: 'refused'; readonly faults: readonly string[] }
  | { readonly kind: 'default avatar'; readonly index: string }
  | { readonly kind: 'media'; readonly canonical: Canonical; readonly filename?: string };

export type QueryKind = 'image' | 'sticker' | 'external' | 'none';

/** A row of the table of resources. */
export interface Row {
  readonly path: string;
  readonly extensions: readonly string[];
  readonly originKey: string;
  readonly query: QueryKind;
}

const FIVE = ['png', 'jpg', 'jpeg', 'webp', 'gif'];

/** Creates a resource; the key of its original is its path without the extension. */
const row = (path: string, query: QueryKind = 'image', extensions = FIVE): Row => {
  const originKey = query === 'none' ? '' : path.slice(1).replace('.{ext}', '');
  return { path, extensions, originKey, query };
};

export const rows: readonly Row[] = [
  row('/avatars/{user_id}/{avatar_hash}.{ext}'),
  row('/icons/{guild_id}/{icon_hash}.{ext}'),
  row('/banners/{guild_id}/{banner_hash}.{ext}'),
  row('/splashes/{guild_id}/{splash_hash}.{ext}'),
  row('/embed-splashes/{guild_id}/{embed_splash_hash}.{ext}', 'image', FIVE.slice(0, 4)),
  row('/emojis/{emoji_id}.{ext}'),
  row('/stickers/{sticker_id}.{ext}', 'sticker', ['webp', 'gif']),
  row('/guilds/{guild_id}/users/{user_id}/avatars/{avatar_hash}.{ext}'),
  row('/guilds/{guild_id}/users/{user_id}/banners/{banner_hash}.{ext}'),
  row('/attachments/{channel_id}/{attachment_id}/{filename}', 'external', []),
  row('/avatars/{index}.{ext}', 'none', ['png']),
];

/** External media; `signed-oracle.ts` parses their raw path. */
export const externalRow: Row = {
  path: '/external/{signature}/{target}',
  extensions: [],
  originKey: '',
  query: 'external',
};

/** Segments of a row's path: literals, or names of placeholders. */
export function segmentsOf({ path }: Row) {
  return path
    .slice(1)
    .split('/')
    .map((text) => ({
      word: text.startsWith('{') ? undefined : text,
      name: text.slice(1, text.indexOf('}')),
      hasExtension: text.endsWith('.{ext}'),
    }));
}

/** Literals of all paths; a path with one of them instead of an id is unknown. */
export const pathWords: readonly string[] = [
  ...new Set(rows.flatMap((each) => segmentsOf(each).flatMap(({ word }) => word ?? []))),
];

export const SIZES =
  '16 20 22 24 28 32 40 44 48 56 60 64 80 96 100 128 160 240 256 300 320 480 512 600 640 1024 1280 1536 2048 3072 4096'.split(
    ' ',
  );

/** Parameters of each kind of query. */
export const parameterNames: Readonly<Record<QueryKind, readonly string[]>> = {
  image: ['size', 'quality', 'animated'],
  sticker: ['size', 'quality', 'animated'],
  external: ['width', 'height', 'format', 'quality', 'animated'],
  none: [],
};

export function isParameterValue(name: string, value: string): boolean {
  const words: Readonly<Record<string, readonly string[]>> = {
    size: SIZES,
    quality: ['high', 'low', 'lossless'],
    animated: ['true', 'false'],
    format: FIVE,
  };
  // Width and height must be plain decimal integers.
  const isEdge = String(Number.parseInt(value, 10)) === value && +value >= 1 && +value <= 4096;
  return words[name]?.includes(value) ?? isEdge;
}

/** Whether a decoded value is valid for a placeholder of a path. */
export function isPathValue(name: string, value: string): boolean {
  if (name === 'filename') return isFilename(value);
  return name.endsWith('hash') ? isHash(value) : isId(value);
}

const isId = (value: string): boolean =>
  /^(?:0|[1-9]\d*)$/.test(value) && BigInt(value) < 18446744073709551616n;

/** `a_` alone is invalid: without this prefix, the key would be empty. */
const isHash = (value: string): boolean => /^[\w-]{1,128}$/.test(value) && value !== 'a_';

const isFilename = (value: string): boolean =>
  /^(?!\.{1,2}$)[^/\\\p{Cc}]+$/u.test(value) && Buffer.byteLength(value) <= 255;

/** Parts of a valid request. */
export interface ValidParts {
  readonly row: Row;
  readonly values: Readonly<Record<string, string>>;
  readonly extension: string | undefined;
  readonly parameters: Readonly<Record<string, string>>;
}

export function canonicalOf({ row, values, extension, parameters }: ValidParts): Canonical {
  const { originKey, query } = row;
  const key = originKey.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name] ?? '';
    return name.endsWith('hash') && value.startsWith('a_') ? value.slice(2) : value;
  });
  const named = query === 'external' ? parameters.format : extension;
  const format = (named === 'jpg' ? 'jpeg' : named) as Format | undefined;
  const quality = (parameters.quality ?? (query === 'image' ? 'high' : 'lossless')) as Quality;
  const width = query === 'external' ? parameters.width : parameters.size;
  const { height } = query === 'external' ? parameters : { height: undefined };
  const size = width ?? (query === 'image' ? '128' : undefined);
  const isPlain = (format ?? width ?? height) === undefined;
  const passthrough = query === 'external' && isPlain && quality === 'lossless';
  const isVideoName = /\.(mp4|m4v|mov|webm|mkv)$/i.test(values.filename ?? '');
  const isOpen = isVideoName && parameters.quality === undefined;
  const isOpenHere = isOpen && (format === 'webp' || format === 'jpeg');
  const isAnimationRequested = (parameters.animated ?? String(query === 'sticker')) === 'true';
  return {
    originKey: key,
    widthPx: size === undefined ? undefined : Number(size),
    heightPx: height === undefined ? undefined : Number(height),
    format,
    // For png and gif, `high` and `lossless` are equal.
    quality: isOpenHere
      ? ''
      : quality === 'high' && (format === 'png' || format === 'gif')
        ? 'lossless'
        : quality,
    animated:
      (isAnimationRequested || (format === 'gif' && query !== 'external')) &&
      !passthrough &&
      !['png', 'jpeg'].includes(format ?? ''),
    passthrough,
  };
}

/** Decoded parts of a target that matches a row. */
export interface TargetParts {
  readonly row: Row;
  /** By placeholder; `undefined` for invalid percent-encoded UTF-8. */
  readonly path: Readonly<Record<string, string | undefined>>;
  /** All values of each known parameter. */
  readonly query: Readonly<Record<string, readonly string[]>>;
}

/** Parses a target; `undefined` if the contract does not have its path. */
export function parseTarget(target: string): TargetParts | undefined {
  const [path, query] = splitTarget(target);
  if (path[0] !== '/') return undefined;
  const texts = path.slice(1).split('/').map(decodeSegment);
  const row = rows.find((each) => fits(each, texts));
  if (row === undefined) return undefined;

  const values: Record<string, string | undefined> = {};
  segmentsOf(row).forEach(({ word, name, hasExtension }, index) => {
    if (word !== undefined) return;
    const text = texts[index];
    const parts = hasExtension ? text?.split('.') : undefined;
    if (parts !== undefined) values.ext = parts.pop();
    values[name] = parts?.join('.') ?? text;
  });
  return { row, path: values, query: queryOf(row.query, query) };
}

/** Returns all values of each parameter of a kind of query. */
export function queryOf(kind: QueryKind, query: string): TargetParts['query'] {
  const given = parametersOf(query);
  const valuesOf = (name: string) => given.flatMap(([key, value]) => (key === name ? [value] : []));
  return Object.fromEntries(parameterNames[kind].map((name) => [name, valuesOf(name)]));
}

export function expectedVerdict(target: string): Verdict {
  const parts = parseTarget(target);
  if (parts === undefined) return { kind: 'unknown path' };
  const { row, path, query } = parts;
  const { ext: extension, ...segments } = path;
  const faults: string[] = [];
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(segments)) {
    if (value === undefined || !isPathValue(name, value)) faults.push(name);
    values[name] = value ?? '';
  }
  if ('ext' in path && !row.extensions.includes(extension ?? '')) faults.push('ext');
  const { faults: ofQuery, parameters } = expectedQuery(query);
  faults.push(...ofQuery);
  if (faults.length > 0) return { kind: 'refused', faults: faults.sort() };
  if (row.query === 'none') return { kind: 'default avatar', index: values.index ?? '' };
  const canonical = canonicalOf({ row, values, extension, parameters });
  const { filename } = values;
  return { kind: 'media', canonical, ...(filename !== undefined && { filename }) };
}

/** Returns names of invalid parameters, and all values. */
export function expectedQuery(query: TargetParts['query']) {
  const faults: string[] = [];
  const parameters: Record<string, string> = {};
  for (const [name, all] of Object.entries(query)) {
    const [value] = all;
    if (value === undefined) continue;
    if (all.length > 1 || !isParameterValue(name, value)) faults.push(name);
    parameters[name] = value;
  }
  return { faults, parameters };
}

/** Splits a target, absolute or not, into raw path and query. */
export function splitTarget(target: string): readonly [path: string, query: string] {
  const [, path = '', query = ''] =
    /^(?:https?:\/\/[^/?#]*)?([^?#]*)\??([^#]*)/i.exec(target) ?? [];
  return [path, query];
}

function fits(row: Row, texts: readonly (string | undefined)[]): boolean {
  const segments = segmentsOf(row);
  if (segments.length !== texts.length) return false;
  return segments.every(({ word, name, hasExtension }, index) => {
    const text = texts[index];
    if (word !== undefined) return text === word;
    if (text === undefined || name === 'filename') return true;
    return hasExtension ? text.includes('.') : !pathWords.includes(text);
  });
}

/** Decodes a segment once; `undefined` for invalid percent-encoded UTF-8. */
export function decodeSegment(text: string): string | undefined {
  if (/[^\0-\x7f]/.test(text)) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Parses a query as an HTML form; a malformed escape is literal text. */
export const parametersOf = (query: string): readonly (readonly [name: string, value: string])[] =>
  // Without `&`, URLSearchParams would drop a question mark at the beginning of the first name.
  [...new URLSearchParams(`&${query}`)];
