import type { IncomingHttpHeaders } from 'node:http';
import type { Validators } from '../contract/result-key.ts';

/** Preconditions of a GET or HEAD that can end in 304. */
type CacheConditions = Pick<IncomingHttpHeaders, 'if-none-match' | 'if-modified-since'>;

/** Preconditions of a GET or HEAD that can end in 412. */
type StateConditions = Pick<IncomingHttpHeaders, 'if-match' | 'if-unmodified-since'>;

// etagc is any visible character except the quote, commas included (RFC 9110 §8.8.3).
const OPAQUE_TAG = '"[\\x21\\x23-\\x7e\\x80-\\xff]*"';
// HTTP's white space only: trim() would also remove U+00A0, which is part of a value.
const ENTITY_TAG = new RegExp(`^[ \\t]*((?:W/)?${OPAQUE_TAG})[ \\t]*$`);
const ANY_TAG = /^[ \t]*\*[ \t]*$/;
// One element of a `#entity-tag` list, possibly empty, and the comma or end after it.
const LIST_ELEMENT = new RegExp(`[ \\t]*(?:((?:W/)?${OPAQUE_TAG})[ \\t]*)?(?:,|$)`, 'y');

export function isConditional(conditions: CacheConditions): boolean {
  return conditions['if-none-match'] !== undefined || conditions['if-modified-since'] !== undefined;
}

/**
 * Whether a GET or HEAD gets a 304 (RFC 9110 §13.1.2, §13.1.3, §13.2.2).
 *
 * If-None-Match takes precedence over If-Modified-Since. It matches any tag of its list by weak comparison, or `*`; a
 * malformed list matches nothing. Dates are compared in seconds; an invalid or unknown one does not count.
 *
 * @param exists whether the response exists. `*` matches only then, since an error takes precedence (§13.2.1)
 */
export function isNotModified(
  conditions: CacheConditions,
  validators: Validators,
  exists = true,
): boolean {
  const { 'if-none-match': ifNoneMatch, 'if-modified-since': ifModifiedSince } = conditions;
  if (ifNoneMatch !== undefined) {
    const { etag } = validators;
    if (ANY_TAG.test(ifNoneMatch)) return exists;
    return etag !== undefined && isListed([etag, `W/${etag}`], ifNoneMatch);
  }
  if (ifModifiedSince === undefined || validators.lastModified === undefined) return false;

  const since = parseHttpDate(ifModifiedSince);
  return since !== undefined && toSeconds(validators.lastModified) <= toSeconds(since);
}

/**
 * Whether a GET or HEAD gets a 412 (RFC 9110 §13.1.1, §13.1.4); check it before `isNotModified` (§13.2.2). The rules are
 * those of `isNotModified`, with strong comparison.
 */
export function isPreconditionFailed(
  { 'if-match': ifMatch, 'if-unmodified-since': ifUnmodifiedSince }: StateConditions,
  { etag, lastModified }: Validators,
): boolean {
  if (ifMatch !== undefined) {
    if (ANY_TAG.test(ifMatch)) return false;
    return etag === undefined || !isListed([etag], ifMatch);
  }
  if (ifUnmodifiedSince === undefined || lastModified === undefined) return false;
  const since = parseHttpDate(ifUnmodifiedSince);
  return since !== undefined && toSeconds(lastModified) > toSeconds(since);
}

/** Whether a list contains one of these tags; `false` for a malformed list. */
function isListed(tags: readonly string[], list: string): boolean {
  let isFound = false;
  LIST_ELEMENT.lastIndex = 0;
  while (LIST_ELEMENT.lastIndex < list.length) {
    const element = LIST_ELEMENT.exec(list);
    if (element === null) return false;
    isFound ||= element[1] !== undefined && tags.includes(element[1]);
  }
  return isFound;
}

/**
 * Whether a `Range` header applies (RFC 9110 §13.1.5): without If-Range, or if If-Range equals the entity tag (by strong
 * comparison) or Last-Modified. A date less than a second old is weak (§8.8.2.2): the original may still change.
 */
export function isRangeApplicable(
  ifRange: string | undefined,
  validators: Validators,
  now: Date = new Date(),
): boolean {
  if (ifRange === undefined) return true;
  const tag = ENTITY_TAG.exec(ifRange)?.[1];
  if (tag !== undefined) return tag.startsWith('"') && tag === validators.etag;

  const date = parseHttpDate(ifRange);
  if (date === undefined || validators.lastModified === undefined) return false;
  const isStrong = now.getTime() - validators.lastModified.getTime() >= 1000;
  return isStrong && toSeconds(date) === toSeconds(validators.lastModified);
}

function toSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const LONG_DAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day';
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = '\\d{2}:\\d{2}:\\d{2}';

/** Date formats of RFC 9110 §5.6.7: IMF-fixdate, RFC 850, asctime. */
const DATE_FORMAT = new RegExp(
  `^(?:${DAY}, \\d{2} ${MONTH} \\d{4} ${TIME} GMT|${LONG_DAY}, \\d{2}-${MONTH}-\\d{2} ${TIME} GMT|${DAY} ${MONTH} [ \\d]\\d ${TIME} \\d{4})$`,
);

/** Parses an HTTP date; returns `undefined` for other formats and for days outside of the calendar. */
function parseHttpDate(text: string): Date | undefined {
  if (!DATE_FORMAT.test(text)) return undefined;
  // asctime has no time zone.
  const date = new Date(text.endsWith(' GMT') ? text : `${text} GMT`);
  // `Date` parses 30 February as 2 March.
  return date.getUTCDate() === Number(/\d+/.exec(text)?.[0]) ? date : undefined;
}
