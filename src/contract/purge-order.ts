import { z } from 'zod';
import { MediaError, type RequestFault } from './errors.ts';
import { canonicalUrlOf } from './external-url.ts';
import { type MediaRequest, parseTarget } from './media-request.ts';
import { canBeginOriginKey, isOriginKey, unmarkedKeyOf } from './origin-key.ts';
import { originFolders } from './resources.ts';
import { externalKeyOf, isExternalKey, readExternalPath } from './signing/external-path.ts';

/** What is to be forgotten: single renderings, all renderings of originals, or all below a prefix. */
export type PurgeOrder =
  | { readonly kind: 'requests'; readonly requests: readonly MediaRequest[] }
  | { readonly kind: 'originals'; readonly originKeys: readonly string[] }
  | { readonly kind: 'prefix'; readonly prefix: string };

/** Most paths or assets of one order. */
const MAX_ITEMS = 1_000;

/** Longest key of an origin, in UTF-16 units (S3: 1024 bytes). */
const MAX_KEY_LENGTH = 1_024;

const items = z
  .array(z.string(), { error: 'Expected a list of texts.' })
  .min(1, { error: 'Expected at least one item.' })
  .max(MAX_ITEMS, { error: `Expected at most ${MAX_ITEMS} items.` });

/** The same, of texts that must be of some form. */
const itemsThat = (fits: (text: string) => boolean, error: string) =>
  items.pipe(z.array(z.string().refine(fits, { error })));

/** What no key of an original has: a backslash, control characters, halves of characters. */
const IMPOSSIBLE = /[\\\p{Cc}\p{Cs}]/u;

/** The folder of what is kept of external media. */
const EXTERNAL = 'external/';

/** First segments of the keys of originals, for the messages about a mistyped one. */
const roots = originFolders.map((folder) => folder.slice(0, -1)).join(', ');

/** Whether a text is all of a key. */
function isKey(text: string): boolean {
  return isOriginKey(text) || isExternalKey(text);
}

function canBeginKey(text: string): boolean {
  return canBeginOriginKey(text) || isExternalKey(text) || `${text}/` === EXTERNAL;
}

/** An order has one of these members, and no other. */
const members = {
  paths: items.meta({
    description: 'Paths and queries of URLs: single renderings.',
    examples: [['/avatars/1/ab12.webp?size=80']],
  }),
  // Half a key would be a folder in the store, and nothing at all in memory.
  assets: itemsThat(
    (text) => !IMPOSSIBLE.test(text) && isKey(withoutSlash(text)),
    `Expected an origin key, such as avatars/1/ab12, that begins with one of ${roots}; for all below a part of one, there is prefix.`,
  ).meta({
    description:
      'Keys of originals, see x-origin-key: all renderings of them. A hash may have its a_ here.',
    examples: [['avatars/1/ab12']],
  }),
  // What no key begins with is refused: it would remove nothing, and a mistyped key would go unnoticed.
  prefix: z
    .string()
    .max(MAX_KEY_LENGTH, { error: `Expected at most ${MAX_KEY_LENGTH} characters.` })
    .refine((text) => !IMPOSSIBLE.test(text) && canBeginKey(withoutSlash(text)), {
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
  external: itemsThat(
    (text) => /^https?:/.test(canonicalUrlOf(text) ?? ''),
    'Expected a complete http or https URL.',
  ).meta({
    description: 'URLs of other sites, in any spelling: all renderings of what they showed.',
    examples: [['https://media.example.org/cat.png']],
  }),
} as const;

const memberNames = Object.keys(members) as (keyof typeof members)[];

/**
 * @param body parsed JSON
 * @throws MediaError `INVALID_FORM_BODY` with all faults
 */
export function parsePurgeOrder(body: unknown): PurgeOrder {
  const [member, value] = readMember(body);
  if (member === 'prefix') {
    const prefix = parse(member, members[member], value);
    // All below a whole key is what was made from one original.
    return isKey(withoutSlash(prefix)) ? originalsOf([prefix]) : { kind: 'prefix', prefix };
  }
  if (member === 'paths') {
    return { kind: 'requests', requests: parsePaths(parse(member, members[member], value)) };
  }
  const items = parse(member, members[member], value);
  return originalsOf(member === 'external' ? items.map(externalKeyOf) : items);
}

/**
 * Of a hash with its `a_`, as the API and URLs have it, the original has a key without; one with it may be
 * there as well, and is not spared.
 */
function originalsOf(assets: readonly string[]): PurgeOrder {
  const originKeys = assets.map(withoutSlash).flatMap((key) => [key, unmarkedKeyOf(key) ?? key]);
  return { kind: 'originals', originKeys: [...new Set(originKeys)] };
}

function withoutSlash(text: string): string {
  return text.replace(/\/$/, '');
}

/** A JSON Schema (draft 2020-12) of an order, for its authors; what it lets by is checked anew. */
export function describePurgeOrder(): Readonly<Record<string, unknown>> {
  return {
    oneOf: Object.entries(members).map(([name, schema]) => {
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

function readMember(body: unknown): [keyof typeof members, unknown] {
  const entries = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const [name, value] = entries.length === 1 ? (entries[0] ?? []) : [];
  const member = memberNames.find((known) => known === name);
  if (member !== undefined) return [member, value];
  const message = 'Expected an object with one of paths, assets, prefix and external.';
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

function parsePaths(paths: readonly string[]): MediaRequest[] {
  const faults: RequestFault[] = [];
  const requests = paths.flatMap((path, index) => {
    try {
      // Who may purge needs no signature.
      const target = parseTarget(path, readExternalPath);
      if (target.kind === 'media') return [target.request];
      faults.push({ path: `paths.${index}`, message: 'Default avatars are never purged.' });
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      const message = error.faults[0]?.message ?? error.message;
      faults.push({ path: `paths.${index}`, message });
    }
    return [];
  });
  if (faults.length > 0) throw new MediaError('INVALID_FORM_BODY', { faults });
  return requests;
}
