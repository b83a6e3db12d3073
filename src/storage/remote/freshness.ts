/** How long what a site has sent may be kept: RFC 9111, as far as an operator's bounds let it decide. */

/** Bounds, in seconds. */
export interface FreshnessBounds {
  readonly minAgeSeconds: number;
  readonly maxAgeSeconds: number;
}

/** Headers by their names in lower case; one that came repeatedly has several values. */
export type ResponseFields = Readonly<Record<string, string | readonly string[] | undefined>>;

// A directive with its argument, which may be quoted although none of these should be (RFC 9111 §5.2).
const DIRECTIVE = /([!#$%&'*+.^_`|~\w-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*)))?/g;

/**
 * How long a response is fresh: what `s-maxage`, `max-age` or `Expires` say, in this order (RFC 9111 §4.2.1), less
 * the time that it has spent in caches already, and within the bounds. The least of them where it says nothing, or
 * forbids to keep it: a picture in a chat is asked for by many at the same moment.
 *
 * @param nowMs since 1970, where the response has no `Date`
 * @returns in milliseconds
 */
export function readFreshness(
  fields: ResponseFields,
  { minAgeSeconds, maxAgeSeconds }: FreshnessBounds,
  nowMs: number,
): number {
  const said = readLifetime(fields, nowMs) - readAge(fields);
  return Math.max(minAgeSeconds, Math.min(said, maxAgeSeconds)) * 1000;
}

function readLifetime(fields: ResponseFields, nowMs: number): number {
  const directives = readDirectives(fields['cache-control']);
  if (['no-store', 'no-cache', 'private'].some((name) => directives.has(name))) return 0;
  for (const name of ['s-maxage', 'max-age']) {
    const text = directives.get(name);
    // What is no number means that it is stale (RFC 9111 §4.2.1).
    if (text !== undefined) return readSeconds(text) ?? 0;
  }
  const expires = readDate(fields.expires);
  const date = readDate(fields.date) ?? nowMs;
  return expires === undefined ? 0 : (expires - date) / 1000;
}

/** The directives by name; of one that stands twice, the first counts. */
function readDirectives(field: ResponseFields[string]): ReadonlyMap<string, string> {
  const text = typeof field === 'string' ? field : (field ?? []).join(',');
  const directives = new Map<string, string>();
  for (const [, name = '', quoted, plain] of text.matchAll(DIRECTIVE)) {
    const key = name.toLowerCase();
    if (!directives.has(key)) directives.set(key, quoted ?? plain ?? '');
  }
  return directives;
}

function readAge(fields: ResponseFields): number {
  return typeof fields.age === 'string' ? (readSeconds(fields.age.trim()) ?? 0) : 0;
}

/** What is beyond that is that long (RFC 9111 §1.2.2), as are all digits that a number has no room for. */
const MAX_SECONDS = 2 ** 31;

function readSeconds(text: string): number | undefined {
  return /^\d+$/.test(text) ? Math.min(Number(text), MAX_SECONDS) : undefined;
}

function readDate(field: ResponseFields[string]): number | undefined {
  const timeMs = typeof field === 'string' ? Date.parse(field) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}
