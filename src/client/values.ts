import { type ValueKind, valueSyntaxes } from './tables.ts';

/** Formats a value as a path segment. Appends validation errors to `faults`. */
export function formatValue(
  name: string,
  kind: ValueKind,
  value: unknown,
  faults: string[],
): string {
  const [pattern, description, maxBytes = Number.POSITIVE_INFINITY] = valueSyntaxes[kind];
  const text = String(value);
  const isText = typeof value === 'string' || (kind === 'snowflake' && typeof value === 'bigint');
  const fits =
    isText &&
    new RegExp(pattern, 'u').test(text) &&
    !/\p{Cs}/u.test(text) &&
    new TextEncoder().encode(text).length <= maxBytes;
  if (fits) return encodeURIComponent(text);
  // A number has already lost the last digits of an id.
  const hint = typeof value === 'number' ? ' Pass a string or a bigint.' : '';
  faults.push(`${name} is ${quote(value)}; expected: ${description}${hint}`);
  return '';
}

/** @throws RangeError with all faults */
export function throwIfAny(subject: string, faults: readonly string[]): void {
  if (faults.length > 0) throw new RangeError(`Invalid ${subject}: ${faults.join(' ')}`);
}

/** Returns a base URL without trailing slashes; an empty string for `undefined`. */
export function parseBase(name: string, text: string | undefined): string {
  if (text === undefined) return '';
  if (!/^https?:\/\/[^/?#]+[^?#]*$/.test(text)) {
    throw new RangeError(
      `${name} is ${quote(text)}; expected an http or https URL without a query.`,
    );
  }
  return text.replace(/\/+$/, '');
}

export function quote(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

/** Splits a URL or path into path and query, without `cdnUrl`. */
export function splitUrl(url: string, cdnUrl: string | undefined): { path: string; query: string } {
  const base = parseBase('cdnUrl', cdnUrl);
  const isBelow = base !== '' && url.startsWith(`${base}/`);
  const local = isBelow ? url.slice(base.length) : url.replace(/^https?:\/\/[^/?#]*/i, '');
  const [, path = '', query = ''] = /^([^?#]*)\??([^#]*)/s.exec(local) ?? [];
  return { path, query };
}

/** Decodes each segment of a path once; returns `undefined` for malformed escapes. */
export function decodePath(path: string): string | undefined {
  const segments = path.split('/').map(decodeOnce);
  return segments.includes(undefined) ? undefined : segments.join('/');
}

export function decodeOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Maximum length of a key in bytes of UTF-8, set by S3. */
const MAX_KEY_BYTES = 1_024;

/** Returns the expected syntax of an invalid key; `undefined` if the key is valid. */
export function findKeyFault(key: unknown): string | undefined {
  if (typeof key !== 'string') return 'a key, such as attachments/1/2/cat.png';
  if (new TextEncoder().encode(key).length > MAX_KEY_BYTES) {
    return `at most ${MAX_KEY_BYTES} bytes of UTF-8`;
  }
  if (/[\\\p{Cc}\p{Cs}]/u.test(key)) return 'no backslash or control character';
  const isPath = key.split('/').every((segment) => !['', '.', '..'].includes(segment));
  return isPath ? undefined : 'segments that are neither empty nor . or ..';
}
