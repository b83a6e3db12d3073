import { z } from 'zod';
import { errorRegistry, MediaError, type RequestFault } from './errors.ts';
import { canonicalUrlOf, findLocalTarget } from './external-url.ts';
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

export type PurgeRequest =
  | { readonly kind: 'renderings'; readonly renderings: readonly MediaRequest[] }
  | {
      readonly kind: 'originals';
      readonly originKeys: readonly string[];
      readonly prefixes?: readonly string[];
    };

const MAX_ITEMS = 1_000;

/** In UTF-16 units; S3 allows 1024 bytes. */
const MAX_KEY_LENGTH = 1_024;

const items = z
  .array(z.string(), { error: 'Expected a list of strings.' })
  .min(1, { error: 'Expected at least one item.' })
  .max(MAX_ITEMS, { error: `Expected at most ${MAX_ITEMS} items.` });

const itemsOf = (fits: (text: string) => boolean, error: string) =>
  items.pipe(z.array(z.string().refine(fits, { error })));

const EXTERNAL = 'external/';

function isKey(text: string, resources: Resources): boolean {
  if (findKeyFault(text) !== undefined) return false;
  return isOriginKey(text, resources) || isExternalKey(text);
}

function canBeginKey(text: string, resources: Resources): boolean {
  if (findKeyFault(text) !== undefined) return false;
  return canBeginOriginKey(text, resources) || isExternalKey(text) || `${text}/` === EXTERNAL;
}

/** Returns the schemas of the members of a body, which has exactly one member. */
function membersOf(resources: Resources) {
  const roots = resources.keyRoots.map((root) => root.slice(0, -1)).join(', ');
  return {
    paths: items.meta({
      description: 'Paths and queries of URLs: single renderings.',
      examples: [['/avatars/1/ab12.webp?size=80']],
    }),
    // Complete keys only: the prefix of a key would remove results from the store, but none from memory.
    assets: itemsOf(
      (text) => isKey(withoutSlash(text), resources),
      `Expected an origin key, such as avatars/1/ab12, that begins with one of ${roots}; use prefix for all keys below a directory.`,
    ).meta({
      description:
        'Keys of originals (x-origin-key): all their renderings. A hash may begin with a_.',
      examples: [['avatars/1/ab12']],
    }),
    // Rejects prefixes that no key has, so that operators notice typing errors.
    prefix: z
      .string()
      .max(MAX_KEY_LENGTH, { error: `Expected at most ${MAX_KEY_LENGTH} characters.` })
      .refine((text) => canBeginKey(withoutSlash(text), resources), {
        error: `Expected an origin key, such as avatars/1/ab12, or its first segments. The first one is one of ${roots}.`,
      })
      .refine((text) => text.endsWith('/'), {
        error: 'Expected a prefix that ends with a slash, such as avatars/1/.',
      })
      .meta({
        description:
          'Prefix of the keys of originals, with a trailing slash: all renderings below it.',
        pattern: '/$',
        examples: ['avatars/1/'],
      }),
    external: itemsOf(
      (text) => /^https?:/.test(canonicalUrlOf(text) ?? ''),
      'Expected a complete http or https URL.',
    ).meta({
      description: 'URLs of other sites, in any spelling: all renderings of their media.',
      examples: [['https://media.example.org/cat.png']],
    }),
    prefixes: items.meta({
      description:
        'Prefixes of URLs without the scheme, as CDNs accept them. A prefix has the host and path of one of `PUBLIC_URLS`, then an original or a directory of originals. The original may have its `a_` and an extension.',
      examples: [['cdn.example.com/avatars/1/ab12']],
    }),
  };
}

type Members = ReturnType<typeof membersOf>;

const plainMembers = membersOf(contractResources);

const memberNames = Object.keys(plainMembers) as (keyof Members)[];

/** Options of a service without settings. Operators need no signature to purge a URL. */
const plainOptions: ParseOptions = { readExternal: readExternalPath };

/** Parses the JSON body of a purge. @throws MediaError `INVALID_FORM_BODY` with all faults */
export function parsePurgeRequest(body: unknown, options = plainOptions): PurgeRequest {
  const [member, value] = readMember(body);
  const { resources = contractResources } = options;
  const members = resources === contractResources ? plainMembers : membersOf(resources);
  if (member === 'prefix') {
    const prefix = parse(member, members[member], value);
    const isComplete = isKey(withoutSlash(prefix), resources);
    const purge = originalsOf(isComplete ? [prefix] : [], resources);
    // A complete key is one original, unless attachments have any depth.
    const mayHaveOriginalsBelow = resources.isLenient && prefix.startsWith('attachments/');
    return isComplete && !mayHaveOriginalsBelow ? purge : { ...purge, prefixes: [prefix] };
  }
  if (member === 'paths') {
    return {
      kind: 'renderings',
      renderings: parsePaths(parse(member, members[member], value), options),
    };
  }
  const items = parse(member, members[member], value);
  if (member === 'prefixes') return parsePrefixes(items, options);
  return originalsOf(member === 'external' ? items.map(externalKeyOf) : items, resources);
}

/** Adds keys without the `a_` of hashes copied from the API or a URL; keys with `a_` may exist as well. */
function originalsOf(assets: readonly string[], resources: Resources) {
  const originKeys = assets
    .map(withoutSlash)
    .flatMap((key) => [key, unmarkedKeyOf(key, resources) ?? key]);
  return { kind: 'originals', originKeys: [...new Set(originKeys)] } as const;
}

function parsePrefixes(urlPrefixes: readonly string[], options: ParseOptions): PurgeRequest {
  const faults: RequestFault[] = [];
  const found = urlPrefixes.map((prefix, index) => {
    const keys = findPrefixKeys(prefix, options);
    if (typeof keys === 'string') faults.push({ path: `prefixes.${index}`, message: keys });
    return typeof keys === 'string' ? { originKeys: [], prefixes: [] } : keys;
  });
  if (faults.length > 0) throw new MediaError('INVALID_FORM_BODY', { faults });
  const { resources = contractResources } = options;
  const originKeys = found.flatMap((it) => it.originKeys);
  const prefixes = [...new Set(found.flatMap((it) => it.prefixes))];
  return { ...originalsOf(originKeys, resources), prefixes };
}

const fileExtensions = platformResourceNames.flatMap(
  (name) => resourceRows[name].fileExtensions ?? [],
);

/**
 * Returns the origin keys and key prefixes of a URL prefix without a scheme, such as `cdn.example.com/avatars/1/ab12`
 * (contract §14), or its fault as a sentence.
 */
function findPrefixKeys(
  text: string,
  { publicUrls = [], resources = contractResources }: ParseOptions,
): { readonly originKeys: string[]; readonly prefixes: string[] } | string {
  const [target] = ['https', 'http'].flatMap(
    (scheme) => findLocalTarget(`${scheme}://${text}`, publicUrls) ?? [],
  );
  if (target === undefined || /[?#]/.test(text)) {
    return 'Expected the host and path of one of PUBLIC_URLS, without a scheme, and a path below it.';
  }
  const segments = target.slice(1).replace(/\/$/, '').split('/');
  const key = segments.map((segment) => decodeOnce(segment) ?? segment).join('/');
  const isComplete = isOriginKey(key, resources);
  const candidates = isComplete
    ? [key]
    : [
        key.replace(/\.[a-z0-9]+$/i, ''),
        ...fileExtensions.map((extension) => `${key}.${extension}`),
      ];
  const originKeys = candidates.filter((each) => isOriginKey(each, resources));
  // Attachments of any depth may be below other attachments.
  const isPrefix = canBeginOriginKey(key, resources) && (!isComplete || resources.isLenient);
  const prefixes = isPrefix ? [`${key}/`] : [];
  if (originKeys.length + prefixes.length > 0) return { originKeys, prefixes };
  return 'Expected the path of an original, with or without its extension, or of a directory of originals.';
}

function withoutSlash(text: string): string {
  return text.replace(/\/$/, '');
}

/** Returns a JSON Schema (draft 2020-12) for the documents. `parsePurgeRequest` is stricter. */
export function describePurgeRequest(): Readonly<Record<string, unknown>> {
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

function parsePaths(paths: readonly string[], options: ParseOptions): MediaRequest[] {
  const faults: RequestFault[] = [];
  const requests = paths.flatMap((path, index) => {
    const target = parseTarget(path, options);
    if (target.kind === 'media') return [target.request];
    faults.push({ path: `paths.${index}`, message: messageOf(target) });
    return [];
  });
  if (faults.length > 0) throw new MediaError('INVALID_FORM_BODY', { faults });
  return requests;
}

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
