import { expect } from 'vitest';
import { commonHeaders } from '../support/http/raw-http.ts';
import type { WireResponse } from '../support/http/wire-response.ts';
import { type Canonical, judge, type Verdict } from './contract-oracle.ts';
import { rangeOf, tagsOf, trimOws } from './header-oracle.ts';
import { formatRequest, MARKER, type SoundRequest } from './surface-requests.ts';
import { CANARY, CHANGED_AT, type Original, readDefaultAvatar } from './surface-storage.ts';
import { openWire } from './wire.ts';

/** Headers that tell of this one exchange and not of the media. */
const OF_THE_EXCHANGE = [
  ...['date', 'connection', 'keep-alive', 'cache-status', 'server-timing', 'x-request-id'],
];

/** Media whose plain GET is known: what every other response about it must agree with. */
interface Learned {
  readonly kind: 'media';
  readonly response: WireResponse;
  readonly etag: string;
  readonly isPassthrough: boolean;
  readonly isDated: boolean;
}

/** A request that has no media, and how it is refused. */
interface Refused {
  readonly kind: 'refused';
  readonly status: number;
  readonly code: string;
  readonly cacheControl: string;
  readonly faults?: readonly string[];
  /** It is found, although it cannot be transformed: a client that has it already gets a 304. */
  readonly isFound: boolean;
}

const refusal = (status: number, code: string, cacheControl: string): Refused => {
  return { kind: 'refused', status, code, cacheControl, isFound: false };
};
const NOT_FOUND = refusal(404, 'NOT_FOUND', 'public, max-age=30');
const UNKNOWN_MEDIA = refusal(404, 'UNKNOWN_MEDIA', 'public, max-age=30');

/** Says what each response must be, from the contract and from what the same URL gave before. */
export class SurfaceModel {
  readonly #port: number;
  readonly #originals: ReadonlyMap<string, Original>;
  readonly #learned = new Map<string, Learned>();
  /** How often each status was seen, so that a run can show what it has met. */
  readonly statuses = new Map<number, number>();

  constructor(port: number, originals: ReadonlyMap<string, Original>) {
    this.#port = port;
    this.#originals = originals;
  }

  /** What a target comes to, as a GET without any condition. */
  async expect(target: string): Promise<Learned | Refused> {
    const verdict = judge(target);
    if (verdict.kind === 'unknown path') return NOT_FOUND;
    if (verdict.kind === 'refused') {
      const { faults } = verdict;
      return { ...refusal(400, 'INVALID_FORM_BODY', 'public, max-age=300'), faults };
    }
    if (verdict.kind === 'default avatar') {
      if (Number(verdict.index) > 5) return UNKNOWN_MEDIA;
      return this.#learn(target, verdict);
    }
    const original = this.#originals.get(verdict.canonical.originKey);
    if (original === undefined) return UNKNOWN_MEDIA;
    if (verdict.canonical.passthrough || original.transformed === 200) {
      return this.#learn(target, verdict);
    }
    const code = original.transformed === 415 ? 'UNSUPPORTED_MEDIA_TYPE' : 'UNPROCESSABLE_MEDIA';
    return { ...refusal(original.transformed, code, 'public, max-age=300'), isFound: true };
  }

  /** Holds one response against what its request must give. */
  async check(request: SoundRequest, response: WireResponse): Promise<void> {
    const { method, target } = request;
    this.#count(response);
    this.checkAny(response);
    const expected = await this.expect(target);
    if (method !== 'GET' && method !== 'HEAD') {
      checkOtherMethod(method, judge(target), response);
    } else if (expected.kind === 'refused') {
      // A client that has it already gets a 304, unless it was refused to another one a moment ago.
      const isKnown = expected.isFound && isCurrent(request, undefined);
      if (isKnown && response.status === 304) return;
      checkRefusal(response, expected, method === 'HEAD');
    } else {
      checkMedia(request, response, expected);
    }
  }

  /** What holds of every response, whatever was asked. */
  checkAny(response: WireResponse): void {
    const { status, headers, body } = response;
    expect(status).toBeLessThan(500);
    for (const [name, value] of Object.entries(headers)) {
      if (name === 'x-request-id') continue; // a client's own, given back to it
      expect(`${name}: ${value}`).not.toContain(MARKER);
    }
    expect(body.includes('CANARY')).toBe(false);
    expect(body.includes(CANARY)).toBe(false);
    for (const name of ['set-cookie', 'location', 'server']) {
      expect(headers).not.toHaveProperty(name);
    }
    if (status === 204 || status === 304) expect(body).toHaveLength(0);
    expect(headers).toMatchObject(commonHeaders);
    if (status >= 400 && body.length > 0) {
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
    }
  }

  #count({ status }: WireResponse): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }

  async #learn(target: string, verdict: Exclude<Verdict, { kind: 'unknown path' | 'refused' }>) {
    const key = JSON.stringify(verdict);
    const known = this.#learned.get(key);
    if (known !== undefined) return known;

    const wire = await openWire(this.#port);
    await wire.send(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`));
    const response = await wire.next(false);
    expect((await wire.rest()).length).toBe(0);
    wire.close();
    if (response === undefined) throw new Error('no response');
    this.checkAny(response);
    expect(response.status).toBe(200);
    const etag = response.headers.etag ?? '';
    expect(etag).toMatch(/^"[!-~]+"$/);
    for (const other of this.#learned.values()) expect(other.etag).not.toBe(etag);
    const learned =
      verdict.kind === 'default avatar'
        ? await learnAvatar(response, etag, verdict.index)
        : this.#learnMedia(response, etag, verdict.canonical, verdict.filename);
    this.#learned.set(key, learned);
    return learned;
  }

  #learnMedia(
    response: WireResponse,
    etag: string,
    canonical: Canonical,
    filename: string | undefined,
  ): Learned {
    const { headers, body } = response;
    const original = this.#originals.get(canonical.originKey);
    if (original === undefined) throw new Error(canonical.originKey);
    const { contentType, disposition, bytes } = original;
    expect(headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'last-modified': CHANGED_AT.toUTCString(),
      'accept-ranges': 'bytes',
    });
    const type = canonical.format === undefined ? contentType : `image/${canonical.format}`;
    expect(headers['content-type']).toBe(type);
    if (canonical.passthrough) expect(body.equals(bytes)).toBe(true);
    else expect(`image/${formatOf(body)}`).toBe(type);
    const sent = headers['content-disposition'];
    if (filename === undefined) expect(sent).toBeUndefined();
    else expect(sent?.split(';')[0]).toBe(disposition);
    return { kind: 'media', response, etag, isPassthrough: canonical.passthrough, isDated: true };
  }
}

async function learnAvatar(response: WireResponse, etag: string, index: string): Promise<Learned> {
  expect(response.body.equals(await readDefaultAvatar(index))).toBe(true);
  expect(response.headers).toMatchObject({
    'cache-control': 'public, max-age=86400',
    'content-type': 'image/png',
    'accept-ranges': 'bytes',
  });
  expect(response.headers).not.toHaveProperty('content-disposition');
  return { kind: 'media', response, etag, isPassthrough: false, isDated: false };
}

/** By the first bytes of a file, as each format begins. */
function formatOf(body: Buffer): string {
  const head = body.subarray(0, 12).toString('latin1');
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'png';
  if (head.startsWith('\xff\xd8\xff')) return 'jpeg';
  if (head.startsWith('GIF89a')) return 'gif';
  return head.startsWith('RIFF') && head.endsWith('WEBP') ? 'webp' : 'unknown';
}

function checkOtherMethod(method: string, verdict: Verdict, response: WireResponse): void {
  if (verdict.kind === 'unknown path') {
    checkRefusal(response, NOT_FOUND, false);
    return;
  }
  const allowed = 'GET, HEAD, OPTIONS';
  expect(response.headers.allow).toBe(allowed);
  if (method !== 'OPTIONS') {
    checkRefusal(response, refusal(405, 'METHOD_NOT_ALLOWED', 'no-store'), false);
    return;
  }
  expect(response.status).toBe(204);
  expect(response.headers['access-control-allow-methods']).toBe(allowed);
}

function checkRefusal(response: WireResponse, expected: Refused, isHead: boolean): void {
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
function valueOfHeader({ headers }: SoundRequest, name: string): string | undefined {
  const values = headers.flatMap(([each, value]) =>
    each.toLowerCase() === name ? [trimOws(value)] : [],
  );
  // Of a date there can be no list: the first one counts.
  if (name === 'if-modified-since') return values[0];
  return values.length === 0 ? undefined : values.join(', ');
}

function isCurrent(request: SoundRequest, learned: Learned | undefined): boolean {
  const list = valueOfHeader(request, 'if-none-match')?.replaceAll(
    '<own tag>',
    learned?.etag ?? '"unknown"',
  );
  if (list !== undefined) {
    // Of what is refused there is no response that `*` could mean.
    if (list === '*') return learned !== undefined;
    return tagsOf(list)?.some((tag) => `"${tag}"` === learned?.etag) ?? false;
  }
  const since = valueOfHeader(request, 'if-modified-since');
  if (since === undefined || learned?.isDated === false) return false;
  const date = dateOf(since);
  return date !== undefined && date >= Math.floor(CHANGED_AT.getTime() / 1000);
}

/** Seconds of a date in one of the three forms, as far as they are drawn here. */
function dateOf(text: string): number | undefined {
  const forms = [
    /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/,
    /^\w+day, \d\d-\w{3}-\d\d [\d:]{8} GMT$/,
    /^\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}$/,
  ];
  if (!forms.some((form) => form.test(text))) return undefined;
  return Math.floor(Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) / 1000);
}

function isRangeApplicable(request: SoundRequest, { etag, isDated }: Learned): boolean {
  const value = valueOfHeader(request, 'if-range')?.replaceAll('<own tag>', etag);
  if (value === undefined || value === etag) return true;
  return isDated && dateOf(value) === Math.floor(CHANGED_AT.getTime() / 1000);
}

function checkMedia(request: SoundRequest, response: WireResponse, learned: Learned): void {
  const { headers, body } = response;
  const { body: whole, headers: plain } = learned.response;
  const cacheStatus = learned.isPassthrough ? 'darkroom; fwd=bypass' : 'darkroom; hit';
  expect(headers['cache-status']).toBe(cacheStatus); // whatever the client says of caches
  expect(headers['server-timing'] ?? 'store').toMatch(
    learned.isPassthrough ? /^origin;dur=[\d.]+$/ : /^store/,
  );

  if (isCurrent(request, learned)) {
    expect(response.status).toBe(304);
    for (const name of ['etag', 'cache-control', 'last-modified']) {
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
  const lasting = (all: WireResponse['headers']) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !OF_THE_EXCHANGE.includes(name)));
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

/** The bytes of a request, its own entity tag put in where it asks for that. */
export async function bytesOf(model: SurfaceModel, request: SoundRequest): Promise<Buffer> {
  const expected = await model.expect(request.target);
  return formatRequest(request, expected.kind === 'media' ? expected.etag : undefined);
}
