import { expect } from 'vitest';
import type { WireResponse } from '../support/http/wire-response.ts';
import type { Verdict } from './contract-oracle.ts';
import { rangeOf, tagsOf, trimOws } from './header-oracle.ts';
import type { ValidRequest } from './surface-requests.ts';
import { CHANGED_AT } from './surface-storage.ts';

/** Headers of one exchange, not of the media. */
const OF_THE_EXCHANGE = [
  ...['cache-control', 'cdn-cache-control'],
  ...['date', 'connection', 'keep-alive', 'cache-status', 'server-timing', 'x-request-id'],
];

/** Media whose response to a plain GET is known; all other responses must agree with it. */
export interface Learned {
  readonly kind: 'media';
  readonly response: WireResponse;
  /** Missing for unchanged media of a site without a strong validator. */
  readonly etag: string | undefined;
  readonly isPassthrough: boolean;
  readonly isOfSite?: boolean;
  /** Whether it is a default avatar, whose response has no `Server-Timing`. */
  readonly isShipped?: boolean;
  readonly changedAtSeconds: number | undefined;
  /** Expected lifetime for a URL that does not expire. */
  readonly cacheControl: string;
}

/** Resources, as distinguished by methods other than GET and HEAD. */
export type TargetKind = Verdict['kind'] | 'unauthorized' | 'forbidden' | 'hidden' | 'upload';

/** Expected error of a request. */
export interface Refused {
  readonly kind: 'refused';
  readonly status: number;
  readonly code: string;
  readonly cacheControl: string;
  readonly faults?: readonly string[];
  /** The original exists, so a conditional request can get a 304. */
  readonly isFound: boolean;
}

export const refusal = (status: number, code: string, cacheControl: string): Refused => {
  return { kind: 'refused', status, code, cacheControl, isFound: false };
};
const CHANGED_SECONDS = Math.floor(CHANGED_AT.getTime() / 1000);
export const NOT_FOUND = refusal(404, 'NOT_FOUND', 'public, max-age=30');
export const UNKNOWN_MEDIA = refusal(404, 'UNKNOWN_MEDIA', 'public, max-age=30');

/** Returns the headers of the media, without those of the exchange. */
export const mediaHeadersOf = (headers: WireResponse['headers']) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_THE_EXCHANGE.includes(name)));

/** Detects a format by the first bytes. */
export function formatOf(body: Buffer): string {
  const head = body.subarray(0, 12).toString('latin1');
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'png';
  if (head.startsWith('\xff\xd8\xff')) return 'jpeg';
  if (head.startsWith('GIF89a')) return 'gif';
  return head.startsWith('RIFF') && head.endsWith('WEBP') ? 'webp' : 'unknown';
}

export function checkOtherMethod(method: string, kind: TargetKind, response: WireResponse) {
  if (kind === 'unknown path') return checkRefusal(response, NOT_FOUND, false);
  const allowed = kind === 'upload' ? 'PUT, OPTIONS' : 'GET, HEAD, OPTIONS';
  expect(response.headers.allow).toBe(allowed);
  if (method !== 'OPTIONS')
    return checkRefusal(
      response,
      refusal(405, 'METHOD_NOT_ALLOWED', 'no-store'),
      method === 'HEAD',
    );
  expect(response.status).toBe(204);
  expect(response.headers['access-control-allow-methods']).toBe(allowed);
}

export function checkRefusal(response: WireResponse, expected: Refused, isHead: boolean): void {
  const { headers, body } = response;
  expect(response.status).toBe(expected.status);
  expect(headers['cache-control']).toBe(expected.cacheControl);
  for (const name of ['etag', 'last-modified', 'content-disposition', 'accept-ranges']) {
    expect(headers).not.toHaveProperty(name);
  }
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  if (isHead) {
    expect(body).toHaveLength(0);
    return;
  }
  const { errors, ...rest } = JSON.parse(body.toString());
  expect(rest).toEqual({ code: expected.code, message: expect.any(String) });
  expect(errors === undefined).toBe(expected.faults === undefined);
  if (expected.faults === undefined) return;
  expect(errors.map(({ path }: { path: string }) => path).sort()).toEqual(expected.faults);
  for (const fault of errors)
    expect(fault).toEqual({ path: fault.path, message: expect.any(String) });
}

/** Joins the values of a header (RFC 9110 §5.3). */
export function valueOfHeader({ headers }: ValidRequest, name: string): string | undefined {
  const values = headers.flatMap(([each, value]) =>
    each.toLowerCase() === name ? [trimOws(value)] : [],
  );
  // A date is not a list: the first one counts.
  if (name.endsWith('modified-since')) return values[0];
  return values.length === 0 ? undefined : values.join(', ');
}

/** Returns the tags of a condition, with the media's own tag inserted. */
const listOf = (request: ValidRequest, name: string, learned: Learned | undefined) =>
  valueOfHeader(request, name)?.replaceAll('<own tag>', learned?.etag ?? '"unknown"');

/** Returns the dates of the original and of a condition in seconds; `undefined` unless both are known. */
function datesOf(request: ValidRequest, name: string, learned: Learned | undefined) {
  const value = valueOfHeader(request, name);
  // For an error, the original's date decides.
  const changedAt = learned === undefined ? CHANGED_SECONDS : learned.changedAtSeconds;
  const date = value === undefined ? undefined : dateOf(value);
  return date === undefined || changedAt === undefined ? undefined : { date, changedAt };
}

/** Whether the conditions of a request forbid a response with media (RFC 9110 §13.2.2, steps 1 and 2). */
export function isForbidden(request: ValidRequest, learned: Learned): boolean {
  const list = listOf(request, 'if-match', learned);
  if (list === '*') return false;
  // Strong comparison (§8.8.3.2): a weak tag never matches.
  if (list !== undefined) return tagsOf(list)?.includes(learned.etag ?? '') !== true;
  const dates = datesOf(request, 'if-unmodified-since', learned);
  return dates !== undefined && dates.date < dates.changedAt;
}

/** Whether the client of a conditional request already has the media. */
export function isCurrent(request: ValidRequest, learned: Learned | undefined): boolean {
  const list = listOf(request, 'if-none-match', learned);
  if (list !== undefined) {
    // `*` does not match an error.
    if (list === '*') return learned !== undefined;
    return tagsOf(list)?.some((tag) => tag.replace('W/', '') === learned?.etag) ?? false;
  }
  const dates = datesOf(request, 'if-modified-since', learned);
  return dates !== undefined && dates.date >= dates.changedAt;
}

/** Parses a date in one of the three formats that tests draw; returns seconds. */
function dateOf(text: string): number | undefined {
  const forms = [
    /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/,
    /^\w+day, \d\d-\w{3}-\d\d [\d:]{8} GMT$/,
    /^\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}$/,
  ];
  if (!forms.some((form) => form.test(text)) || text.includes('30 Feb')) return undefined;
  return Math.floor(Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) / 1000);
}

function isRangeApplicable(request: ValidRequest, { etag, changedAtSeconds }: Learned): boolean {
  if (etag === undefined) return false;
  const value = valueOfHeader(request, 'if-range')?.replaceAll('<own tag>', etag);
  if (value === undefined || value === etag) return true;
  return changedAtSeconds !== undefined && dateOf(value) === changedAtSeconds;
}

/** Lifetime of external media: minimum, and maximum duration of a run, in seconds. */
const MIN_SITE_SECONDS = 3_600;
const RUN = 600;

const ageOf = (cacheControl = ''): number =>
  Number(/^public, max-age=(\d+)$/.exec(cacheControl)?.[1]);

/** A lifetime ends with the URL, and is at most that of media; for external media, it starts at the site's response. */
function checkAge(
  value: string | undefined,
  { cacheControl, isOfSite = false }: Learned,
  endsAt?: number,
): void {
  if (isOfSite) {
    expect(ageOf(value)).toBeLessThanOrEqual(ageOf(cacheControl));
    expect(ageOf(value)).toBeGreaterThanOrEqual(
      Math.max(ageOf(cacheControl) - RUN, MIN_SITE_SECONDS),
    );
    return;
  }
  if (endsAt === undefined || endsAt === Number.POSITIVE_INFINITY) {
    const ending = endsAt === undefined ? '' : ', immutable';
    expect(value).toBe(cacheControl.replace(ending, ''));
    return;
  }
  const age = ageOf(value);
  const left = endsAt - Date.now() / 1000;
  // The response is at most as old as a conversation's deadline.
  expect(age).toBeGreaterThanOrEqual(Math.floor(left) - 1);
  expect(age).toBeLessThanOrEqual(left + 20);
}

export function checkMedia(
  request: ValidRequest,
  response: WireResponse,
  learned: Learned,
  expiresAtSeconds: number | undefined,
): void {
  const { headers, body } = response;
  const { body: complete, headers: plain } = learned.response;
  const cacheStatus = learned.isPassthrough ? 'darkroom; fwd=bypass' : 'darkroom; hit';
  expect(headers['cache-status']).toBe(cacheStatus); // for any Cache-Control of the client
  if (learned.isShipped === true) expect(headers).not.toHaveProperty('server-timing');
  // The first bytes of external media are cached, so the origin may take no time.
  const withoutStage = learned.isOfSite && learned.isPassthrough ? 'origin;dur=0' : 'store';
  expect(headers['server-timing'] ?? withoutStage).toMatch(
    learned.isPassthrough ? /^origin;dur=[\d.]+$/ : /^store/,
  );

  if (isForbidden(request, learned)) {
    const isHead = request.method === 'HEAD';
    checkRefusal(response, refusal(412, 'PRECONDITION_FAILED', 'no-store'), isHead);
    return;
  }
  if (isCurrent(request, learned)) {
    expect(response.status).toBe(304);
    checkAge(headers['cache-control'], learned, expiresAtSeconds);
    for (const name of ['etag', 'last-modified', 'x-robots-tag']) {
      expect(headers[name], name).toBe(plain[name]);
    }
    for (const name of ['content-length', 'content-range'])
      expect(headers).not.toHaveProperty(name);
    return;
  }
  const range = valueOfHeader(request, 'range');
  const isRange =
    request.method === 'GET' && range !== undefined && isRangeApplicable(request, learned);
  const part = isRange ? rangeOf(range, complete.length) : 'full';
  if (part === 'unsatisfiable') {
    expect(headers['content-range']).toBe(`bytes */${complete.length}`);
    checkRefusal(response, refusal(416, 'RANGE_NOT_SATISFIABLE', 'no-store'), false);
    return;
  }
  checkAge(headers['cache-control'], learned, expiresAtSeconds);
  const due = mediaHeadersOf(plain);
  let sent = complete;
  if (part !== 'full') {
    const [first = 0, last = 0] = part.split('-').map(Number);
    sent = complete.subarray(first, last + 1);
    due['content-length'] = String(sent.length);
    due['content-range'] = `bytes ${part}/${complete.length}`;
  }
  expect(response.status).toBe(part === 'full' ? 200 : 206);
  expect(mediaHeadersOf(headers)).toEqual(due);
  expect(body.equals(request.method === 'HEAD' ? Buffer.alloc(0) : sent)).toBe(true);
}
