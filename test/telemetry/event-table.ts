import { expect } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { MemoryResultStore } from '../support/memory-result-store.ts';
import { signedPath } from '../support/signed-urls.ts';
import { type ExternalAppOptions, signedPathOf } from '../support/sites/external-app.ts';
import { scrape } from '../support/telemetry/prometheus-text.ts';
import { samples } from '../support/test-app.ts';
import { capabilityOf, uploadTarget } from '../support/uploads/relay-app.ts';
import { CUT_PNG, type ObservedApp } from './observed-app.ts';

/** A request, and what operators see of it; `events.test.ts` derives the rest from its log line. */
export interface Event {
  readonly options?: () => ExternalAppOptions;
  /** Preceding requests, which are not checked. */
  readonly before?: (app: ObservedApp) => Promise<unknown>;
  readonly target: string | ((app: ObservedApp) => string);
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whether the client leaves when the origin is contacted. */
  readonly leaves?: true;
  /** Fields of its log line, except those of all lines. */
  readonly line: Readonly<Record<string, unknown>> & { readonly status: number };
  /** Stages in the line, the histogram and `Server-Timing`. Omit to derive them from the spans. */
  readonly stages?: string;
  /** Whether `Server-Timing` is hidden, since it would reveal the progress of a fetch from another site. */
  readonly isConcealed?: true;
  /** Child spans except `send`, with their attributes; `.` abbreviates `darkroom.`. */
  readonly spans?: readonly string[];
  /** Counters in addition to requests, bytes and stages. */
  readonly counted?: Readonly<Record<string, number>>;
  readonly logged?: readonly object[];
}

const AVATAR = '/avatars/3.png?size=16';
const icon = '/icons/1/ab.webp?size=16&v=7';
const iconAsset = 'icons/1/ab?width=16&height=&format=webp&quality=high&animated=false';
const file = '/attachments/1/2/a%20b.txt';
const ofFile = {
  resource: 'attachment',
  asset: 'attachments/1/2/a%20b.txt?width=&height=&format=&quality=lossless&animated=false',
  cache: 'bypass',
};
const ofIcon = { resource: 'guild icon', asset: iconAsset };
const ofEmoji = (id: number) => ({
  resource: 'custom emoji',
  asset: `emojis/${id}?width=128&height=&format=png&quality=lossless&animated=false`,
});
const nothing = { resource: 'none', cache: 'none' };
const absent = 'store .memory=results .found=false';
const state = 'origin .origin.part=state';
const sizeOf = (bytes: Uint8Array): string => `.bytes=${bytes.length}`;
const bodyOf = (bytes: Uint8Array): string => `origin .origin.part=body ${sizeOf(bytes)}`;
const failedBy = (code: string) => `.error.code=${code} error.type=${code}`;
const failed = failedBy('ORIGIN_ERROR');
const jpegFacts = `facts ${sizeOf(samples.jpeg)} .format=jpeg .width=480 .height=480 .frames=1`;
const iconSpans = [
  jpegFacts,
  'queue .lane=light',
  'render .lane=light .format=webp .width=16 .height=16 .frames=1 .bytes=<body>',
];
const read = (bytes: number, found = 1) => ({
  'origin_reads_total{outcome=found}': found,
  'origin_read_bytes_total{}': bytes,
});
const missed = { 'cache_misses_total{cache=results}': 1 };
const missedBoth = { ...missed, 'cache_misses_total{cache=originals}': 1 };
const rendered = { 'queue_wait_seconds_count{lane=light}': 1 };
const fails = (
  code: 'ORIGIN_ERROR' | 'ORIGIN_TIMEOUT',
  status: number,
  outcome: string,
  cause = new Error('no route'),
): Event => {
  const details = { code, url: icon, client: '127.0.0.1', err: { cause } };
  return {
    before: async ({ originals }) => {
      originals.failure = new MediaError(code, { cause });
    },
    target: icon,
    line: { ...ofIcon, status, code, cache: 'miss' },
    spans: [absent, `${state} ${failedBy(code)}`],
    counted: { ...missed, [`origin_reads_total{outcome=${outcome}}`]: 1 },
    logged: [{ level: 'error', message: 'a request failed', details }],
  };
};
const refuses = (id: number, status: number, code: string, original: Uint8Array): Event => {
  const target = `/emojis/${id}.png`;
  return {
    target,
    line: { ...ofEmoji(id), status, code, cache: 'miss' },
    spans: [absent, state, bodyOf(original), `facts .error.code=${code}`],
    counted: { ...missedBoth, ...read(original.length) },
    logged: [{ level: 'info', message: 'an original was refused', details: { code, url: target } }],
  };
};
/** A request without media. */
const plain = (target: string, status: number, code?: string, method = 'GET'): Event => ({
  method,
  target,
  line: { ...nothing, asset: target, status, ...(code && { code }) },
});
const upload = (
  capability: string,
  query: string | undefined,
  status: number,
  code?: string,
): Event => {
  const path = '/v1/relay/attachments/7/7/a';
  return {
    method: 'PUT',
    target: () => (query === undefined ? uploadTarget('attachments/7/7/a') : path + query),
    headers: { 'Content-Length': '5' },
    body: 'hello',
    line: {
      resource: 'upload',
      asset: path,
      status,
      cache: 'none',
      ...(code && { code }),
      capability,
      receivedBytes: code === undefined ? 5 : 0,
    },
    counted: code === undefined ? { 'upload_received_bytes_total{}': 5 } : {},
  };
};
const requestIcon = (app: ObservedApp) => app.send('GET', icon);
const never = () => new Promise<never>(() => undefined);

const hit = (method: string, status: number, headers = {}): Event => ({
  before: requestIcon,
  method,
  headers,
  target: icon,
  line: { ...ofIcon, status, cache: 'memory', ...(method === 'HEAD' && { bytes: 0 }) },
  stages: 'store',
  counted: { 'cache_hits_total{cache=results}': 1 },
});

/** All outcomes of requests. */
export const events: Readonly<Record<string, Event>> = {
  'a cold render': {
    options: () => ({ resultStore: new MemoryResultStore() }),
    target: icon,
    headers: { 'X-Request-Id': 'abc-1' },
    line: { id: 'abc-1', ...ofIcon, status: 200, cache: 'miss' },
    spans: [
      absent,
      state,
      'store .memory=store .found=false',
      bodyOf(samples.jpeg),
      ...iconSpans,
      'write .bytes=<body>',
    ],
    counted: {
      ...missedBoth,
      ...rendered,
      ...read(samples.jpeg.length + 1, 2), // a byte for the state
      'cache_misses_total{cache=store}': 1,
      'store_writes_total{outcome=written}': 1,
    },
  },
  'a hit in memory': hit('GET', 200),
  'a hit in memory, by HEAD': hit('HEAD', 200),
  'a hit that the client has cached': hit('GET', 304, { 'If-None-Match': '*' }),
  'a hit in the store': {
    options: () => ({
      resultStore: new MemoryResultStore(),
      settings: { CACHE_MEMORY_BYTES: '0' },
    }),
    before: requestIcon,
    target: icon,
    line: { ...ofIcon, status: 200, cache: 'store' },
    spans: [absent, 'store .memory=store .found=true .bytes=<body>'],
    counted: { ...missed, 'cache_hits_total{cache=store}': 1 },
  },
  'an unchanged original': {
    before: async (app) => {
      await requestIcon(app);
      app.clock.advance(300_000);
    },
    target: icon,
    line: { ...ofIcon, status: 200, cache: 'revalidated' },
    spans: ['store .memory=results .found=true', state],
    counted: { ...read(1), 'cache_hits_total{cache=results}': 1 },
  },
  'a range of a passthrough': {
    target: file,
    headers: { Range: 'bytes=0-9', Host: 'media.example:8443' },
    line: { ...ofFile, signature: 'missing', status: 206, bytes: 10 },
    spans: [`${state} ${sizeOf(samples.text)}`],
    counted: { ...read(samples.text.length), 'attachment_signatures_total{verdict=missing}': 1 },
  },
  'a signed attachment': {
    before: async (app) => app.originals.put('attachments/1/2/a.txt', samples.text),
    target: () => signedPath('attachments/1/2/a.txt', Math.floor(Date.now() / 1000) + 60),
    line: { ...ofFile, asset: ofFile.asset.replace('a%20b', 'a'), signature: 'valid', status: 200 },
    spans: [bodyOf(samples.text)],
    counted: { ...read(samples.text.length), 'attachment_signatures_total{verdict=valid}': 1 },
  },
  'a default avatar': {
    target: AVATAR,
    line: { resource: 'default avatar', asset: AVATAR, status: 200, cache: 'memory' },
  },
  'a missing original': {
    target: '/emojis/1.png',
    line: { ...ofEmoji(1), status: 404, code: 'UNKNOWN_MEDIA', cache: 'miss' },
    spans: [absent, `${state} .error.code=UNKNOWN_MEDIA`],
    counted: { ...missed, 'origin_reads_total{outcome=missing}': 1 },
  },
  'an unknown path': {
    target: `/${'x'.repeat(1_000)}`,
    headers: { Host: 'h'.repeat(300) },
    line: { ...nothing, asset: `/${'x'.repeat(199)}…`, status: 404, code: 'NOT_FOUND' },
  },
  'an invalid parameter': plain('/emojis/01.png?size=3', 400, 'INVALID_FORM_BODY'),
  'an invalid method': plain('/emojis/1.png', 405, 'METHOD_NOT_ALLOWED', 'PROPFIND'),
  'a request for the allowed methods': plain('/emojis/1.png', 204, undefined, 'OPTIONS'),
  'a file that is not an image': refuses(7, 415, 'UNSUPPORTED_MEDIA_TYPE', samples.text),
  'a damaged image': refuses(8, 422, 'UNPROCESSABLE_MEDIA', CUT_PNG),
  'a render above the rate limit of a client': {
    options: () => ({ settings: { RATE_LIMIT_REQUESTS: '1' } }),
    before: (app) => app.send('GET', '/icons/1/ab.png?size=16'),
    target: icon,
    line: { ...ofIcon, status: 429, code: 'RATE_LIMITED', cache: 'miss' },
    spans: [absent, jpegFacts],
    counted: {
      ...missed,
      'cache_hits_total{cache=originals}': 1,
      'rate_limited_total{resource=guild icon}': 1,
    },
    logged: [
      {
        level: 'warn',
        message: 'a client has exceeded its rate limit',
        details: { client: '127.0.0.1', requests: 1, windowMs: 60_000 },
      },
    ],
  },
  'a render above the limit of the queue': {
    options: () => ({
      settings: { WORKERS: '1', QUEUE_PER_WORKER: '1' },
      renderer: { render: never },
    }),
    before: async (app) => {
      for (const size of [20, 22, 24]) await app.begin(`/icons/1/ab.webp?size=${size}`);
      const waiting = async () =>
        (await scrape(app)).read('darkroom_queue_length', { lane: 'light' });
      await expect.poll(waiting).toBe(1);
    },
    target: icon,
    line: { ...ofIcon, status: 503, code: 'OVERLOADED', cache: 'miss' },
    spans: [absent, jpegFacts, 'queue .lane=light .error.code=OVERLOADED error.type=OVERLOADED'],
    counted: { ...missed, 'refusals_total{reason=light lane}': 1 },
    logged: [
      { level: 'warn', message: 'request rejected: overloaded', details: { code: 'OVERLOADED' } },
    ],
  },
  'an origin that fails': fails('ORIGIN_ERROR', 502, 'failed'),
  'an origin that times out': fails('ORIGIN_TIMEOUT', 504, 'timeout'),
  'an origin that fails after it has responded': {
    before: async (app) => {
      await requestIcon(app);
      app.clock.advance(300_000);
      app.originals.failure = new MediaError('ORIGIN_ERROR');
    },
    target: icon,
    line: { ...ofIcon, status: 200, cache: 'stale-if-error' },
    spans: ['store .memory=results .found=true', `${state} ${failed}`],
    counted: { 'cache_hits_total{cache=results}': 1, 'origin_reads_total{outcome=failed}': 1 },
  },
  'a render with an internal error': {
    options: () => ({ renderer: { render: () => Promise.reject(new TypeError('a bug')) } }),
    target: icon,
    line: { ...ofIcon, status: 500, code: 'INTERNAL_ERROR', cache: 'miss' },
    spans: [
      absent,
      state,
      bodyOf(samples.jpeg),
      jpegFacts,
      'queue .lane=light',
      'render .lane=light .format=webp .width=16 .height=16 .frames=1 error.type=TypeError',
    ],
    counted: { ...missedBoth, ...rendered, ...read(samples.jpeg.length) },
    logged: [
      {
        level: 'error',
        message: 'a request failed',
        details: { code: 'INTERNAL_ERROR', err: { cause: new TypeError('a bug') } },
      },
    ],
  },
  'a client that leaves': {
    options: () => ({ origin: { identity: 'tag' as const, open: never } }),
    leaves: true,
    target: icon,
    line: { ...ofIcon, status: 499, cache: 'miss', bytes: 0 },
    stages: 'store',
    spans: [absent, `${state} .aborted=true`],
    counted: { ...missed, 'origin_reads_total{outcome=stopped}': 1 },
  },
  'an upload': upload('valid', undefined, 200),
  'an upload without a capability': upload('missing', '', 401, 'UNAUTHORIZED'),
  'an upload with a malformed capability': upload('malformed', '?t=x', 401, 'UNAUTHORIZED'),
  'an upload with two capabilities': upload('malformed', '?t=x.y&t=x.y', 401, 'UNAUTHORIZED'),
  'an upload with a forged capability': upload('mismatch', '?t=x.y', 401, 'UNAUTHORIZED'),
  'an upload with an expired capability': upload(
    'expired',
    `?t=${capabilityOf('attachments/7/7/a', { expiresAtSeconds: 1 })}`,
    401,
    'UNAUTHORIZED',
  ),
  'an upload whose capability is for another key': upload(
    'other key',
    `?t=${capabilityOf('attachments/7/7/b')}`,
    403,
    'ACCESS_DENIED',
  ),
  'an upload whose capability is for a part': upload(
    'other part',
    `?t=${capabilityOf('attachments/7/7/a', { part: { uploadId: 'u', partNumber: 1 } })}`,
    403,
    'ACCESS_DENIED',
  ),
  'media of another site': {
    target: ({ urlOf }) => signedPathOf(urlOf('/cat.jpg'), 'width=16&format=webp&quality=high'),
    line: {
      resource: 'external media',
      asset: expect.stringMatching(
        /^external\/[\w-]{43}\?width=16&height=&format=webp&quality=high&animated=false$/,
      ),
      host: expect.stringMatching(/^site\.test:\d+$/),
      status: 200,
      cache: 'miss',
    },
    spans: [absent, `fetch .fetch.unchanged=false ${sizeOf(samples.jpeg)}`, state, ...iconSpans],
    counted: { ...missed, ...rendered, 'external_fetches_total{outcome=fetched}': 1 },
  },
  'another site with a private address': {
    target: () => signedPathOf('http://evil.test/'),
    line: {
      resource: 'external media',
      asset: expect.stringMatching(
        /^external\/[\w-]{43}\?width=&height=&format=&quality=lossless&animated=false$/,
      ),
      host: 'evil.test',
      status: 502,
      code: 'ORIGIN_ERROR',
      cache: 'bypass',
    },
    isConcealed: true,
    spans: [
      `fetch ${failed} .fetch.failure=address`,
      `origin .origin.part=body ${failed} .fetch.failure=address`,
    ],
    counted: { 'external_fetches_total{outcome=address}': 1 },
    logged: [
      {
        level: 'warn',
        message: 'a fetch from another site failed or was refused',
        details: { why: 'address', host: 'evil.test', address: '10.0.0.1' },
      },
    ],
  },
};
