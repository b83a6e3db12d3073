/** Freshness of responses from other sites: RFC 9111 within the operator's bounds. */

/** Bounds, in seconds. */
export interface FreshnessBounds {
  readonly minAgeSeconds: number;
  readonly maxAgeSeconds: number;
}

/** Headers by lower-case name; a repeated one has several values. */
export type ResponseFields = Readonly<Record<string, string | readonly string[] | undefined>>;

// A directive with its argument, which may be quoted although none of ours should be (RFC 9111 §5.2).
const DIRECTIVE = /([!#$%&'*+.^_`|~\w-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*)))?/g;

/**
 * Returns how long a response is fresh: `s-maxage`, `max-age` or `Expires`, in this order (RFC 9111 §4.2.1), less the
 * time already spent in caches, clamped to the bounds. The lower bound applies if the headers are missing or forbid
 * caching: many clients request an image in a chat at the same moment.
 *
 * @param nowMs since 1970, for responses without `Date`
 * @returns milliseconds
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
    // An invalid number means that the response is stale (RFC 9111 §4.2.1).
    if (text !== undefined) return readSeconds(text) ?? 0;
  }
  const expires = readDate(fields.expires);
  const date = readDate(fields.date) ?? nowMs;
  return expires === undefined ? 0 : (expires - date) / 1000;
}

/** Parses the directives by name; of a repeated one, the first counts. */
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

/** Greatest age; larger values count as this one (RFC 9111 §1.2.2), as do numbers of too many digits. */
const MAX_SECONDS = 2 ** 31;

function readSeconds(text: string): number | undefined {
  return /^\d+$/.test(text) ? Math.min(Number(text), MAX_SECONDS) : undefined;
}

function readDate(field: ResponseFields[string]): number | undefined {
  const timeMs = typeof field === 'string' ? Date.parse(field) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}
