import { z } from 'zod';
import { MediaError, type RequestFault } from './errors.ts';
import { canonicalUrlOf } from './external-url.ts';
import {
  canBeginOriginKey,
  findKeyFault,
  isOriginKey,
  originKeyOf,
  parsePath,
  unmarkedKeyOf,
} from './media-path.ts';
import { contractResources, type Resources } from './resources.ts';

export const blockKinds = ['key', 'prefix', 'sha256', 'external'] as const;
export type BlockKind = (typeof blockKinds)[number];

export interface BlockSubject {
  readonly kind: BlockKind;
  /** An origin key, a prefix of origin keys, a digest in lower case, or a canonical URL. */
  readonly value: string;
}

export interface Block extends BlockSubject {
  readonly hidden: boolean;
  readonly note: string;
}

export interface BlockRequest extends Pick<Block, 'hidden' | 'note'> {
  readonly subjects: readonly BlockSubject[];
}

export const MAX_BLOCKS = 1_000;

/** In UTF-16 units. */
const MAX_NOTE_LENGTH = 1_000;

interface MemberRow {
  readonly kind: BlockKind;
  readonly description: string;
  readonly example: string;
  readonly expected: string;
  /** Returns the canonical value; `undefined` for invalid text. */
  readonly parse: (text: string, resources: Resources) => string | undefined;
}

const rows = {
  keys: {
    kind: 'key',
    description: 'Keys of originals (x-origin-key), with or without a_ and extension.',
    example: 'avatars/1/ab12',
    expected: 'an origin key, such as avatars/1/ab12',
    parse: parseKey,
  },
  prefixes: {
    kind: 'prefix',
    description: 'Prefixes of keys: complete segments and a trailing slash.',
    example: 'attachments/1/',
    expected: 'the first segments of origin keys and a slash, such as attachments/1/',
    parse: (text, resources) => {
      const key = text.slice(0, -1);
      const isValid = text.endsWith('/') && findKeyFault(key) === undefined;
      return isValid && canBeginOriginKey(key, resources) ? text : undefined;
    },
  },
  sha256: {
    kind: 'sha256',
    description: 'SHA-256 digests of originals: these bytes, under every key and URL.',
    example: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    expected: '64 hexadecimal digits',
    parse: (text) => (/^[\da-f]{64}$/i.test(text) ? text.toLowerCase() : undefined),
  },
  external: {
    kind: 'external',
    description: 'URLs of other sites, in any spelling.',
    example: 'https://media.example.org/cat.png',
    expected: 'a complete http or https URL',
    parse: (text) => {
      const url = canonicalUrlOf(text);
      return url !== undefined && /^https?:/.test(url) ? url : undefined;
    },
  },
} as const satisfies Readonly<Record<string, MemberRow>>;

const options = {
  hidden: z.boolean({ error: 'Expected true or false.' }),
  note: z
    .string({ error: 'Expected a text.' })
    .max(MAX_NOTE_LENGTH, { error: `Expected at most ${MAX_NOTE_LENGTH} characters.` }),
} as const;

/** Parses the JSON body of a request. @throws MediaError `INVALID_FORM_BODY` with all faults */
export function parseBlockRequest(body: unknown, resources = contractResources): BlockRequest {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  const members: Readonly<Record<string, unknown>> = isObject ? { ...body } : {};
  const faults: RequestFault[] = [];
  const subjects = new Map<string, BlockSubject>();
  let count = 0;
  for (const [member, row] of Object.entries<MemberRow>(rows)) {
    const items = members[member] ?? [];
    if (!Array.isArray(items)) {
      faults.push({ path: member, message: 'Expected a list of strings.' });
      continue;
    }
    count += items.length;
    items.slice(0, MAX_BLOCKS).forEach((item: unknown, index) => {
      const value = typeof item === 'string' ? row.parse(item, resources) : undefined;
      if (value !== undefined) subjects.set(`${row.kind} ${value}`, { kind: row.kind, value });
      else faults.push({ path: `${member}.${index}`, message: `Expected ${row.expected}.` });
    });
  }
  for (const [member, schema] of Object.entries(options)) {
    const [issue] = schema.optional().safeParse(members[member]).error?.issues ?? [];
    if (issue !== undefined) faults.push({ path: member, message: issue.message });
  }
  const known = [...Object.keys(rows), ...Object.keys(options)];
  const unknown = Object.keys(members).filter((name) => !known.includes(name));
  for (const member of unknown.slice(0, MAX_BLOCKS)) {
    faults.push({ path: member, message: `Expected one of ${known.join(', ')}.` });
  }
  if (count === 0 && faults.length === 0) {
    const message = `Expected an object with one of ${Object.keys(rows).join(', ')}.`;
    faults.push({ path: '', message });
  }
  if (count > MAX_BLOCKS) {
    faults.push({ path: '', message: `Expected at most ${MAX_BLOCKS} entries.` });
  }
  if (faults.length > 0) throw new MediaError('INVALID_FORM_BODY', { faults });
  const { hidden = false, note = '' } = members as Partial<Pick<Block, 'hidden' | 'note'>>;
  return { subjects: [...subjects.values()], hidden, note };
}

/**
 * Parses the query of `GET /blocks`.
 *
 * @returns the block to look up; `undefined` for the complete list
 * @throws MediaError `INVALID_FORM_BODY` with all faults
 */
export function parseBlockQuery(
  query: unknown,
  resources = contractResources,
): BlockSubject | undefined {
  const { kind, value } = query as Readonly<Record<string, unknown>>;
  if (kind === undefined && value === undefined) return undefined;
  const row = Object.values<MemberRow>(rows).find((each) => each.kind === kind);
  const parsed = typeof value === 'string' ? row?.parse(value, resources) : undefined;
  if (row !== undefined && parsed !== undefined) return { kind: row.kind, value: parsed };
  const faults: RequestFault[] = [];
  if (row === undefined) {
    faults.push({ path: 'kind', message: `Expected one of ${blockKinds.join(', ')}.` });
  }
  if (row !== undefined || typeof value !== 'string') {
    faults.push({ path: 'value', message: `Expected ${row?.expected ?? 'a value'}.` });
  }
  throw new MediaError('INVALID_FORM_BODY', { faults });
}

/** Returns a JSON Schema (draft 2020-12) for the documents. `parseBlockRequest` is stricter. */
export function describeBlockRequest(): Readonly<Record<string, unknown>> {
  const lists = Object.entries<MemberRow>(rows).map(([name, { description, example }]) => {
    const schema = { type: 'array', items: { type: 'string' }, maxItems: MAX_BLOCKS };
    return [name, { ...schema, description, examples: [[example]] }];
  });
  return {
    type: 'object',
    properties: {
      ...Object.fromEntries(lists),
      hidden: {
        type: 'boolean',
        default: false,
        description: 'Whether to return a 404, as for missing media, instead of a 451.',
      },
      note: { type: 'string', maxLength: MAX_NOTE_LENGTH, description: 'A text for operators.' },
    },
    additionalProperties: false,
  };
}

/** Parses an origin key, also as in a path: with extension and `a_`. */
function parseKey(text: string, resources: Resources): string | undefined {
  if (findKeyFault(text) !== undefined) return undefined;
  if (isOriginKey(text, resources)) return unmarkedKeyOf(text, resources) ?? text;
  const parsed = parsePath(`/${text.split('/').map(encodeURIComponent).join('/')}`, resources);
  return parsed.kind === 'valid' ? originKeyOf(parsed.path) : undefined;
}
