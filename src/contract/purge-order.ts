import { z } from 'zod';
import { errorRegistry, MediaError, type RequestFault } from './errors.ts';
import { canonicalUrlOf, findOwnTarget } from './external-url.ts';
import {
  canBeginOriginKey,
  decodeOnce,
  findKeyFault,
  isOriginKey,
  unmarkedKeyOf,
} from './media-path.ts';
import {
  type MediaRequest,
  type ParseOptions,
  parseTarget,
  type RequestTarget,
} from './media-request.ts';
import {
  contractResources,
  platformResourceNames,
  type Resources,
  resourceRows,
} from './resources.ts';
import { externalKeyOf, isExternalKey, readExternalPath } from './signing/external-path.ts';

/** Renderings to purge: single ones, or all of some originals and of folders of originals. */
export type PurgeOrder =
  | { readonly kind: 'requests'; readonly requests: readonly MediaRequest[] }
  | {
      readonly kind: 'originals';
      readonly originKeys: readonly string[];
      /** Folders of keys, with a slash at the end. */
      readonly folders?: readonly string[];
    };

/** Most paths or assets of one order. */
const MAX_ITEMS = 1_000;

/** Longest key of an origin, in UTF-16 units (S3: 1024 bytes). */
const MAX_KEY_LENGTH = 1_024;

const items = z
  .array(z.string(), { error: 'Expected a list of strings.' })
  .min(1, { error: 'Expected at least one item.' })
  .max(MAX_ITEMS, { error: `Expected at most ${MAX_ITEMS} items.` });

const itemsOf = (fits: (text: string) => boolean, error: string) =>
  items.pipe(z.array(z.string().refine(fits, { error })));

/** Folder of stored results of external media. */
const EXTERNAL = 'external/';

function isKey(text: string, resources: Resources): boolean {
  if (findKeyFault(text) !== undefined) return false;
  return isOriginKey(text, resources) || isExternalKey(text);
}

function canBeginKey(text: string, resources: Resources): boolean {
  if (findKeyFault(text) !== undefined) return false;
  return canBeginOriginKey(text, resources) || isExternalKey(text) || `${text}/` === EXTERNAL;
}

/** Returns the members of an order, which has exactly one of them. */
function membersOf(resources: Resources) {
  // The first segments of the keys of originals, for the messages about a mistyped one.
  const roots = resources.originFolders.map((folder) => folder.slice(0, -1)).join(', ');
  return {
    paths: items.meta({
      description: 'Paths and queries of URLs: single renderings.',
      examples: [['/avatars/1/ab12.webp?size=80']],
    }),
    // A partial key would be a folder in the store, and would match nothing in memory.
    assets: itemsOf(
      (text) => isKey(withoutSlash(text), resources),
      `Expected an origin key, such as avatars/1/ab12, that begins with one of ${roots}; for all below a part of one, there is prefix.`,
    ).meta({
      description:
        'Keys of originals, see x-origin-key: all renderings of them. A hash may have its a_ here.',
      examples: [['avatars/1/ab12']],
    }),
    // A prefix of no key is refused: it would remove nothing, and a mistyped key would go unnoticed.
    prefix: z
      .string()
      .max(MAX_KEY_LENGTH, { error: `Expected at most ${MAX_KEY_LENGTH} characters.` })
      .refine((text) => canBeginKey(withoutSlash(text), resources), {
        error: `Expected an origin key, such as avatars/1/ab12, or whole segments that one begins with. The first one is one of ${roots}.`,
      })
      .refine((text) => text.endsWith('/'), {
        error: 'Expected a prefix that ends with a slash, such as avatars/1/.',
      })
      .meta({
        description: 'What keys of originals begin with: all renderings below it.',
        pattern: '/$',
        examples: ['avatars/1/'],
      }),
    external: itemsOf(
      (text) => /^https?:/.test(canonicalUrlOf(text) ?? ''),
      'Expected a complete http or https URL.',
    ).meta({
      description: 'URLs of other sites, in any spelling: all renderings of what they showed.',
      examples: [['https://media.example.org/cat.png']],
    }),
    prefixes: items.meta({
      description:
        'What URLs begin with, without their scheme, as CDNs purge: the host of one of `PUBLIC_URLS` with its path, and an original, with or without `a_` and extension, or a folder of originals.',
      examples: [['cdn.example.com/avatars/1/ab12']],
    }),
  };
}

type Members = ReturnType<typeof membersOf>;

const plainMembers = membersOf(contractResources);

const memberNames = Object.keys(plainMembers) as (keyof Members)[];

/** The reading of a service without settings. An operator who may purge needs no signature. */
const plainReading: ParseOptions = { readExternal: readExternalPath };

/**
 * @param body parsed JSON
 * @param reading as the service reads its targets, but without checks of signatures
 * @throws MediaError `INVALID_FORM_BODY` with all faults
 */
export function parsePurgeOrder(body: unknown, reading = plainReading): PurgeOrder {
  const [member, value] = readMember(body);
  const { resources = contractResources } = reading;
  const members = resources === contractResources ? plainMembers : membersOf(resources);
  if (member === 'prefix') {
    const prefix = parse(member, members[member], value);
    const isWhole = isKey(withoutSlash(prefix), resources);
    const order = originalsOf(isWhole ? [prefix] : [], resources);
    // Everything below a whole key was made from one original, unless keys of attachments have any depth.
    const mayHaveMore = resources.isLenient && prefix.startsWith('attachments/');
    return isWhole && !mayHaveMore ? order : { ...order, folders: [prefix] };
  }
  if (member === 'paths') {
    return {
      kind: 'requests',
      requests: parsePaths(parse(member, members[member], value), reading),
    };
  }
  const items = parse(member, members[member], value);
  if (member === 'prefixes') return parsePrefixes(items, reading);
  return originalsOf(member === 'external' ? items.map(externalKeyOf) : items, resources);
}

/**
 * Adds the key without `a_` for a hash with this mark, as the API and URLs write it; a key with the mark may exist as
 * well, and is purged too.
 */
function originalsOf(assets: readonly string[], resources: Resources) {
  const originKeys = assets
    .map(withoutSlash)
    .flatMap((key) => [key, unmarkedKeyOf(key, resources) ?? key]);
  return { kind: 'originals', originKeys: [...new Set(originKeys)] } as const;
}

function parsePrefixes(prefixes: readonly string[], reading: ParseOptions): PurgeOrder {
  const faults: RequestFault[] = [];
  const found = prefixes.map((prefix, index) => {
    const keys = findPrefixKeys(prefix, reading);
    if (typeof keys === 'string') faults.push({ path: `prefixes.${index}`, message: keys });
    return typeof keys === 'string' ? { originKeys: [], folders: [] } : keys;
  });
  if (faults.length > 0) throw new MediaError('INVALID_FORM_BODY', { faults });
  const { resources = contractResources } = reading;
  const originKeys = found.flatMap((it) => it.originKeys);
  const folders = [...new Set(found.flatMap((it) => it.folders))];
  return { ...originalsOf(originKeys, resources), folders };
}

const fileExtensions = platformResourceNames.flatMap(
  (name) => resourceRows[name].fileExtensions ?? [],
);

/**
 * Returns the originals and folders below a prefix of URLs, as a CDN takes it: `cdn.example.com/avatars/1/ab12` (contract
 * §14); or the fault, as a sentence, if the prefix is below none of our public URLs, or names nothing that can exist.
 */
function findPrefixKeys(
  text: string,
  { publicUrls = [], resources = contractResources }: ParseOptions,
): { readonly originKeys: string[]; readonly folders: string[] } | string {
  const [target] = ['https', 'http'].flatMap(
    (scheme) => findOwnTarget(`${scheme}://${text}`, publicUrls) ?? [],
  );
  if (target === undefined || /[?#]/.test(text)) {
    return 'Expected the host and path of one of PUBLIC_URLS, without a scheme, and a path below it.';
  }
  const segments = target.slice(1).replace(/\/$/, '').split('/');
  const key = segments.map((segment) => decodeOnce(segment) ?? segment).join('/');
  const isWhole = isOriginKey(key, resources);
  const named = isWhole
    ? [key]
    : [
        key.replace(/\.[a-z0-9]+$/i, ''),
        ...fileExtensions.map((extension) => `${key}.${extension}`),
      ];
  const originKeys = named.filter((each) => isOriginKey(each, resources));
  // Attachments of any depth may be below the key of another one.
  const isFolder = canBeginOriginKey(key, resources) && (!isWhole || resources.isLenient);
  const folders = isFolder ? [`${key}/`] : [];
  if (originKeys.length + folders.length > 0) return { originKeys, folders };
  return 'Expected the path of an original, with or without its extension, or of a folder of originals.';
}

function withoutSlash(text: string): string {
  return text.replace(/\/$/, '');
}

/** Returns a JSON Schema (draft 2020-12) of an order, for authors; `parsePurgeOrder` checks more than this schema. */
export function describePurgeOrder(): Readonly<Record<string, unknown>> {
  return {
    oneOf: Object.entries(plainMembers).map(([name, schema]) => {
      const { $schema: _, ...member } = z.toJSONSchema(schema, { io: 'input' });
      return {
        type: 'object',
        properties: { [name]: member },
        required: [name],
        additionalProperties: false,
      };
    }),
  };
}

function readMember(body: unknown): [keyof Members, unknown] {
  const entries = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const [name, value] = entries.length === 1 ? (entries[0] ?? []) : [];
  const member = memberNames.find((each) => each === name);
  if (member !== undefined) return [member, value];
  const message = `Expected an object with one of ${memberNames.join(', ')}.`;
  throw new MediaError('INVALID_FORM_BODY', { faults: [{ path: '', message }] });
}

function parse<Value>(member: string, schema: z.ZodType<Value>, value: unknown): Value {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => ({
    path: [member, ...path].join('.'),
    message,
  }));
  throw new MediaError('INVALID_FORM_BODY', { faults });
}

function parsePaths(paths: readonly string[], reading: ParseOptions): MediaRequest[] {
  const faults: RequestFault[] = [];
  const requests = paths.flatMap((path, index) => {
    const target = parseTarget(path, reading);
    if (target.kind === 'media') return [target.request];
    faults.push({ path: `paths.${index}`, message: messageOf(target) });
    return [];
  });
  if (faults.length > 0) throw new MediaError('INVALID_FORM_BODY', { faults });
  return requests;
}

/** Returns why a target cannot be purged. */
function messageOf(target: Exclude<RequestTarget, { readonly kind: 'media' }>): string {
  switch (target.kind) {
    case 'default avatar':
      return 'Default avatars are never purged.';
    case 'unknown':
      return errorRegistry.NOT_FOUND.message;
    case 'invalid':
      return target.error.faults[0]?.message ?? target.error.message;
  }
}
