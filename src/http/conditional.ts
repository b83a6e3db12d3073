/** Conditional requests (RFC 9110 §13): decided from validators, before any body exists where that may be. */

import type { IncomingHttpHeaders } from 'node:http';
import type { Validators } from '../pipeline/media-task.ts';
import { parseHttpDate } from './http-date.ts';

/** The two preconditions of a GET or HEAD that can end in 304. */
type CacheConditions = Pick<IncomingHttpHeaders, 'if-none-match' | 'if-modified-since'>;

// etagc takes anything visible but the quote, commas included (RFC 9110 §8.8.3).
const OPAQUE_TAG = '"[\\x21\\x23-\\x7e\\x80-\\xff]*"';
// White space is what HTTP takes for it, and not what trim() does: U+00A0 is part of a value.
const ENTITY_TAG = new RegExp(`^[ \\t]*((?:W/)?${OPAQUE_TAG})[ \\t]*$`);
const ANY_TAG = /^[ \t]*\*[ \t]*$/;
// One element of a `#entity-tag` list, possibly empty, with the comma or end that follows it.
const LIST_ELEMENT = new RegExp(`[ \\t]*(?:(?:W/)?(${OPAQUE_TAG})[ \\t]*)?(?:,|$)`, 'y');

/** Whether a request can end in a 304 at all. */
export function isConditional(conditions: CacheConditions): boolean {
  return conditions['if-none-match'] !== undefined || conditions['if-modified-since'] !== undefined;
}

/**
 * Whether a GET or HEAD gets a 304 (RFC 9110 §13.1.2, §13.1.3, §13.2.2).
 *
 * If-None-Match, by its presence, disables If-Modified-Since. It matches by weak comparison, on
 * any tag of its list or on `*`; a malformed list matches nothing. If-Modified-Since compares
 * whole seconds, and counts for nothing when its date is invalid or ours is unknown.
 *
 * @param isMade whether there is a response. Before, `*` matches nothing: it would be a 304 where the
 *   plain request may be an error, which comes first (§13.2.1). A tag or a date was given out with one
 */
export function isNotModified(
  conditions: CacheConditions,
  validators: Validators,
  isMade = true,
): boolean {
  const { 'if-none-match': ifNoneMatch, 'if-modified-since': ifModifiedSince } = conditions;
  if (ifNoneMatch !== undefined) {
    const { etag } = validators;
    if (ANY_TAG.test(ifNoneMatch)) return isMade;
    return etag !== undefined && isListed(etag, ifNoneMatch);
  }
  if (ifModifiedSince === undefined || validators.lastModified === undefined) return false;

  const since = parseHttpDate(ifModifiedSince);
  return since !== undefined && wholeSeconds(validators.lastModified) <= wholeSeconds(since);
}

function isListed(etag: string, list: string): boolean {
  const tags = parseOpaqueTags(list);
  return tags?.includes(etag.replace(/^W\//, '')) ?? false;
}

/** The opaque tags of a list, quotes included and weakness dropped; `undefined` if malformed. */
function parseOpaqueTags(list: string): readonly string[] | undefined {
  const tags: string[] = [];
  LIST_ELEMENT.lastIndex = 0;
  while (LIST_ELEMENT.lastIndex < list.length) {
    const element = LIST_ELEMENT.exec(list);
    if (element === null) return undefined;
    if (element[1] !== undefined) tags.push(element[1]);
  }
  return tags;
}

/**
 * Whether a `Range` header still applies (RFC 9110 §13.1.5): true without If-Range, else only if
 * it is our very entity tag (strong comparison: a weak tag never matches) or a date equal to our
 * Last-Modified. When false, the range is ignored and the whole body sent.
 *
 * A date counts as a strong validator only when it is a second in the past: until then, the original
 * might change once more and keep it (RFC 9110 §8.8.2.2).
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
  return isStrong && wholeSeconds(date) === wholeSeconds(validators.lastModified);
}

function wholeSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
