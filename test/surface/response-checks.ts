import { expect } from 'vitest';
import type { WireResponse } from '../support/http/wire-response.ts';
import type { Verdict } from './contract-oracle.ts';
import { rangeOf, tagsOf, trimOws } from './header-oracle.ts';
import type { SoundRequest } from './surface-requests.ts';
import { CHANGED_AT } from './surface-storage.ts';

/** Headers that tell of this one exchange and not of the media. */
const OF_THE_EXCHANGE = [
  ...['cache-control', 'cdn-cache-control'],
  ...['date', 'connection', 'keep-alive', 'cache-status', 'server-timing', 'x-request-id'],
];

/** Media whose plain GET is known: what every other response about it must agree with. */
export interface Learned {
  readonly kind: 'media';
  readonly response: WireResponse;
  /** Of media of a site that tells no strong validator, without parameters, there is none. */
  readonly etag: string | undefined;
  readonly isPassthrough: boolean;
  readonly isOfSite?: boolean;
  /** A default avatar, which enters no stage. */
  readonly isShipped?: boolean;
  readonly changedAtSeconds: number | undefined;
  /** What its lifetime must be where its URL does not end. */
  readonly cacheControl: string;
}

/** What is asked for, as far as other methods than GET and HEAD are concerned. */
export type AskedKind = Verdict['kind'] | 'unauthorized' | 'forbidden' | 'hidden' | 'upload';

/** A request that has no media, and how it is refused. */
export interface Refused {
  readonly kind: 'refused';
  readonly status: number;
  readonly code: string;
  readonly cacheControl: string;
  readonly faults?: readonly string[];
  /** It is found, although it cannot be transformed: a client that has it already gets a 304. */
  readonly isFound: boolean;
}

export const refusal = (status: number, code: string, cacheControl: string): Refused => {
  return { kind: 'refused', status, code, cacheControl, isFound: false };
};
const CHANGED_SECONDS = Math.floor(CHANGED_AT.getTime() / 1000);
export const NOT_FOUND = refusal(404, 'NOT_FOUND', 'public, max-age=30');
export const UNKNOWN_MEDIA = refusal(404, 'UNKNOWN_MEDIA', 'public, max-age=30');

/** The headers of the media, without those of the exchange. */
export const lasting = (headers: WireResponse['headers']) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_THE_EXCHANGE.includes(name)));

/** By the first bytes of a file, as each format begins. */
export function formatOf(body: Buffer): string {
  const head = body.subarray(0, 12).toString('latin1');
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'png';
  if (head.startsWith('\xff\xd8\xff')) return 'jpeg';
  if (head.startsWith('GIF89a')) return 'gif';
  return head.startsWith('RIFF') && head.endsWith('WEBP') ? 'webp' : 'unknown';
}

export function checkOtherMethod(method: string, kind: AskedKind, response: WireResponse) {
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

/** The values of a header, as one (RFC 9110 §5.3). */
export function valueOfHeader({ headers }: SoundRequest, name: string): string | undefined {
  const values = headers.flatMap(([each, value]) =>
    each.toLowerCase() === name ? [trimOws(value)] : [],
  );
  // Of a date there can be no list: the first one counts.
  if (name.endsWith('modified-since')) return values[0];
  return values.length === 0 ? undefined : values.join(', ');
}

/** The list of tags that a condition has, with the media's own tag put in. */
const listOf = (request: SoundRequest, name: string, learned: Learned | undefined) =>
  valueOfHeader(request, name)?.replaceAll('<own tag>', learned?.etag ?? '"unknown"');

/** The original's date, and that of a condition, in seconds; `undefined` unless both are known. */
function datesOf(request: SoundRequest, name: string, learned: Learned | undefined) {
  const value = valueOfHeader(request, name);
  // Of what is refused, its original's date decides.
  const changedAt = learned === undefined ? CHANGED_SECONDS : learned.changedAtSeconds;
  const date = value === undefined ? undefined : dateOf(value);
  return date === undefined || changedAt === undefined ? undefined : { date, changedAt };
}

/** Whether the conditions of a request forbid a response with media (RFC 9110 §13.2.2, steps 1 and 2). */
export function isForbidden(request: SoundRequest, learned: Learned): boolean {
  const list = listOf(request, 'if-match', learned);
  if (list === '*') return false;
  // By strong comparison (§8.8.3.2), in which a weak tag is like no other.
  if (list !== undefined) return tagsOf(list)?.includes(learned.etag ?? '') !== true;
  const dates = datesOf(request, 'if-unmodified-since', learned);
  return dates !== undefined && dates.date < dates.changedAt;
}

/** Whether a client that sends these conditions has what it asks for already. */
export function isCurrent(request: SoundRequest, learned: Learned | undefined): boolean {
  const list = listOf(request, 'if-none-match', learned);
  if (list !== undefined) {
    // Of what is refused there is no response that `*` could mean.
    if (list === '*') return learned !== undefined;
    return tagsOf(list)?.some((tag) => tag.replace('W/', '') === learned?.etag) ?? false;
  }
  const dates = datesOf(request, 'if-modified-since', learned);
  return dates !== undefined && dates.date >= dates.changedAt;
}

/** Seconds of a date in one of the three forms, as far as they are drawn here. */
function dateOf(text: string): number | undefined {
  const forms = [
    /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/,
    /^\w+day, \d\d-\w{3}-\d\d [\d:]{8} GMT$/,
    /^\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}$/,
  ];
  if (!forms.some((form) => form.test(text)) || text.includes('30 Feb')) return undefined;
  return Math.floor(Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) / 1000);
}

function isRangeApplicable(request: SoundRequest, { etag, changedAtSeconds }: Learned): boolean {
  if (etag === undefined) return false;
  const value = valueOfHeader(request, 'if-range')?.replaceAll('<own tag>', etag);
  if (value === undefined || value === etag) return true;
  return changedAtSeconds !== undefined && dateOf(value) === changedAtSeconds;
}

/** Bounds of the lifetime of what is on another site: the shortest, and how long a run may take; in seconds. */
const SITE_LEAST = 3_600;
const RUN = 600;

const ageOf = (cacheControl = ''): number =>
  Number(/^public, max-age=(\d+)$/.exec(cacheControl)?.[1]);

/** A lifetime is as long as the URL's own, and no longer than that of media; that of a site's runs from its response. */
function checkAge(
  value: string | undefined,
  { cacheControl, isOfSite = false }: Learned,
  endsAt?: number,
): void {
  if (isOfSite) {
    expect(ageOf(value)).toBeLessThanOrEqual(ageOf(cacheControl));
    expect(ageOf(value)).toBeGreaterThanOrEqual(Math.max(ageOf(cacheControl) - RUN, SITE_LEAST));
    return;
  }
  if (endsAt === undefined || endsAt === Number.POSITIVE_INFINITY) {
    const ending = endsAt === undefined ? '' : ', immutable';
    expect(value).toBe(cacheControl.replace(ending, ''));
    return;
  }
  const age = ageOf(value);
  const left = endsAt - Date.now() / 1000;
  // Of a response that came at most the deadline of a conversation ago.
  expect(age).toBeGreaterThanOrEqual(Math.floor(left) - 1);
  expect(age).toBeLessThanOrEqual(left + 20);
}

export function checkMedia(
  request: SoundRequest,
  response: WireResponse,
  learned: Learned,
  expiresAtSeconds: number | undefined,
): void {
  const { headers, body } = response;
  const { body: whole, headers: plain } = learned.response;
  const cacheStatus = learned.isPassthrough ? 'darkroom; fwd=bypass' : 'darkroom; hit';
  expect(headers['cache-status']).toBe(cacheStatus); // whatever the client says of caches
  if (learned.isShipped === true) expect(headers).not.toHaveProperty('server-timing');
  // The first bytes of what is on another site are remembered.
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
  const part = isRange ? rangeOf(range, whole.length) : 'full';
  if (part === 'unsatisfiable') {
    expect(headers['content-range']).toBe(`bytes */${whole.length}`);
    checkRefusal(response, refusal(416, 'RANGE_NOT_SATISFIABLE', 'no-store'), false);
    return;
  }
  checkAge(headers['cache-control'], learned, expiresAtSeconds);
  const due = lasting(plain);
  let sent = whole;
  if (part !== 'full') {
    const [first = 0, last = 0] = part.split('-').map(Number);
    sent = whole.subarray(first, last + 1);
    due['content-length'] = String(sent.length);
    due['content-range'] = `bytes ${part}/${whole.length}`;
  }
  expect(response.status).toBe(part === 'full' ? 200 : 206);
  expect(lasting(headers)).toEqual(due);
  expect(body.equals(request.method === 'HEAD' ? Buffer.alloc(0) : sent)).toBe(true);
}
