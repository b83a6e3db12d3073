/** Largest snowflake: 64 bits, unsigned (contract §1). */
const MAX_SNOWFLAKE = 2n ** 64n - 1n;

/** Longest hash, its `a_` prefix included (contract §1). */
const MAX_HASH_LENGTH = 128;

/** Longest attachment file name in bytes of UTF-8 (contract §1). */
const MAX_FILENAME_BYTES = 255;

/** Kinds of values that a placeholder of a path has (contract §1). */
export type PathValueKind = 'snowflake' | 'hash' | 'filename';

/** Form of a value, for checks and for documentation. */
interface PathValueForm {
  /** Source of an ECMAScript regular expression with the flag `u`; the whole value must match. */
  readonly pattern: string;
  /** Longest value in bytes of UTF-8, which a pattern cannot count. */
  readonly maxBytes?: number;
  readonly description: string;
  readonly example: string;
}

/** The form of each kind of value. */
export const pathValueForms = {
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
  filename: {
    // The control characters are written out: many readers of the OpenAPI document know no \p{Cc}.
    pattern: '^(?!\\.{1,2}$)[^/\\\\\\x00-\\x1f\\x7f-\\x9f]+$',
    maxBytes: MAX_FILENAME_BYTES,
    description: `1 to ${MAX_FILENAME_BYTES} bytes of UTF-8 once decoded; no slash, backslash or control character, neither . nor ..`,
    example: 'photo.png',
  },
} as const satisfies Record<PathValueKind, PathValueForm>;

const snowflake = new RegExp(pathValueForms.snowflake.pattern, 'u');
const hash = new RegExp(pathValueForms.hash.pattern, 'u');

/** Returns the kind of a placeholder's value by its name: `{…_hash}`, `{filename}`; all others are ids. */
export function kindOfPathValue(name: string): PathValueKind {
  if (name === 'filename') return 'filename';
  return name.endsWith('_hash') ? 'hash' : 'snowflake';
}

/** Returns what is wrong with a placeholder's value, as a sentence; `undefined` if the value is valid. */
export function findPathValueFault(name: string, value: string): string | undefined {
  switch (kindOfPathValue(name)) {
    case 'filename':
      return findFilenameFault(value);
    case 'hash':
      return hash.test(value)
        ? undefined
        : `Expected 1 to ${MAX_HASH_LENGTH} characters of A-Z a-z 0-9 _ -.`;
    case 'snowflake':
      return snowflake.test(value)
        ? undefined
        : `Expected a decimal integer from 0 to ${MAX_SNOWFLAKE} without sign or leading zero.`;
  }
}

/** Has a sentence for each fault; a test compares their sum with the form above. */
function findFilenameFault(value: string): string | undefined {
  const bytes = new TextEncoder().encode(value).length;
  if (bytes < 1 || bytes > MAX_FILENAME_BYTES) {
    return `Expected 1 to ${MAX_FILENAME_BYTES} bytes of UTF-8 but received ${bytes}.`;
  }
  if (value === '.' || value === '..') return 'Expected a file name, not a directory.';
  if (/[/\\\p{Cc}]/u.test(value)) return 'Expected no slash, backslash or control character.';
  return undefined;
}

/**
 * Returns a pattern of the integers from 0 to a limit: all with fewer digits, and of those with equally many digits
 * each that is smaller at some digit and equal before.
 */
function patternUpTo(limit: bigint): string {
  const digits = [...limit.toString()].map(Number);
  const smaller = digits.flatMap((digit, position) => {
    const least = position === 0 ? 1 : 0;
    if (digit <= least) return [];
    const rest = digits.length - position - 1;
    const range = digit - 1 === least ? `${least}` : `[${least}-${digit - 1}]`;
    return [`${digits.slice(0, position).join('')}${range}${rest > 0 ? `[0-9]{${rest}}` : ''}`];
  });
  return ['0', `[1-9][0-9]{0,${digits.length - 2}}`, ...smaller, limit.toString()].join('|');
}
