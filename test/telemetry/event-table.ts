import { expect } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { MemoryResultStore } from '../support/memory-result-store.ts';
import { signedPath } from '../support/signed-urls.ts';
import { type ExternalAppOptions, signedPathOf } from '../support/sites/external-app.ts';
import { scrape } from '../support/telemetry/prometheus-text.ts';
import { samples } from '../support/test-app.ts';
import { uploadTarget } from '../support/uploads/relay-app.ts';
import type { ObservedApp } from './observed-app.ts';

/** One request, and what an operator sees of it; what follows from its line stands in `events.test.ts`. */
export interface Event {
  readonly options?: () => ExternalAppOptions;
  /** Comes before it, and is not looked at. */
  readonly before?: (app: ObservedApp) => Promise<unknown>;
  readonly target: string | ((app: ObservedApp) => string);
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Its client leaves as soon as its origin is asked. */
  readonly leaves?: true;
  /** The line on it, but for what all of them have. */
  readonly line: Readonly<Record<string, unknown>> & { readonly status: number };
  /** Stages of the line, of the histogram and of `Server-Timing`, where the spans do not show them. */
  readonly stages?: string;
  /** `Server-Timing` would tell how far a fetch from another site went. */
  readonly isConcealed?: true;
  /** Spans below that of the request but for `send`, with their attributes; `.` stands for `darkroom.`. */
  readonly spans?: readonly string[];
  /** What is counted besides requests, bytes and stages. */
  readonly counted?: Readonly<Record<string, number>>;
  /** Lines on what went wrong. */
  readonly logged?: readonly object[];
}

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
const failed = '.error.code=ORIGIN_ERROR error.type=ORIGIN_ERROR';
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
const fails = (code: 'ORIGIN_ERROR' | 'ORIGIN_TIMEOUT', cause = new Error('no route')) => ({
  before: async (app: ObservedApp) => {
    app.originals.failure = new MediaError(code, { cause });
  },
  logged: [
    {
      level: 'error',
      message: 'a request failed',
      details: { code, url: icon, client: '127.0.0.1', err: { cause } },
    },
  ],
});
const refused = (code: string, url: string) => [
  { level: 'info', message: 'an original was refused', details: { code, url } },
];
const askIcon = (app: ObservedApp) => app.send('GET', icon);
const never = () => new Promise<never>(() => undefined);

const hit = (method: string, status: number, headers = {}): Event => ({
  before: askIcon,
  ...{ method, headers, target: icon },
  line: { ...ofIcon, status, cache: 'memory', ...(method === 'HEAD' && { bytes: 0 }) },
  stages: 'store',
  counted: { 'cache_hits_total{cache=results}': 1 },
});

/** What can become of a request, each once. */
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
  'a hit that its client has already': hit('GET', 304, { 'If-None-Match': '*' }),
  'a hit in the store': {
    options: () => ({
      resultStore: new MemoryResultStore(),
      settings: { CACHE_MEMORY_BYTES: '0' },
    }),
    before: askIcon,
    target: icon,
    line: { ...ofIcon, status: 200, cache: 'store' },
    spans: [absent, 'store .memory=store .found=true .bytes=<body>'],
    counted: { ...missed, 'cache_hits_total{cache=store}': 1 },
  },
  'what the origin has not changed': {
    before: async (app) => {
      await askIcon(app);
      app.clock.advance(300_000);
    },
    target: icon,
    line: { ...ofIcon, status: 200, cache: 'revalidated' },
    spans: ['store .memory=results .found=true', state],
    counted: { ...read(1), 'cache_hits_total{cache=results}': 1 },
  },
  'what is passed on, a part of it': {
    target: file,
    headers: { Range: 'bytes=0-9', Host: 'media.example:8443' },
    line: { ...ofFile, signature: 'missing', status: 206, bytes: 10 },
    spans: [`${state} ${sizeOf(samples.text)}`],
    counted: { ...read(samples.text.length), 'attachment_signatures_total{verdict=missing}': 1 },
  },
  'what is signed': {
    before: async (app) => app.originals.put('attachments/1/2/a.txt', samples.text),
    target: () => signedPath('attachments/1/2/a.txt', Math.floor(Date.now() / 1000) + 60),
    line: {
      ...ofFile,
      asset: ofFile.asset.replace('a%20b', 'a'),
      signature: 'valid',
      status: 200,
    },
    spans: [bodyOf(samples.text)],
    counted: { ...read(samples.text.length), 'attachment_signatures_total{verdict=valid}': 1 },
  },
  'a default avatar': {
    target: '/avatars/3.png?size=16',
    line: {
      resource: 'default avatar',
      asset: '/avatars/3.png?size=16',
      status: 200,
      cache: 'memory',
    },
  },
  'what is not there': {
    target: '/emojis/1.png',
    line: { ...ofEmoji(1), status: 404, code: 'UNKNOWN_MEDIA', cache: 'miss' },
    spans: [absent, `${state} .error.code=UNKNOWN_MEDIA`],
    counted: { ...missed, 'origin_reads_total{outcome=missing}': 1 },
  },
  'a path of nothing': {
    target: `/${'x'.repeat(1_000)}`,
    headers: { Host: 'h'.repeat(300) },
    line: { ...nothing, asset: `/${'x'.repeat(199)}…`, status: 404, code: 'NOT_FOUND' },
  },
  'a wrong parameter': {
    target: '/emojis/01.png?size=3',
    line: { ...nothing, asset: '/emojis/01.png?size=3', status: 400, code: 'INVALID_FORM_BODY' },
  },
  'a wrong method': {
    method: 'PROPFIND',
    target: '/emojis/1.png',
    line: { ...nothing, asset: '/emojis/1.png', status: 405, code: 'METHOD_NOT_ALLOWED' },
  },
  'a question for the methods': {
    method: 'OPTIONS',
    target: '/emojis/1.png',
    line: { ...nothing, asset: '/emojis/1.png', status: 204 },
  },
  'no image': {
    target: '/emojis/7.png',
    line: { ...ofEmoji(7), status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', cache: 'miss' },
    spans: [absent, state, bodyOf(samples.text), 'facts .error.code=UNSUPPORTED_MEDIA_TYPE'],
    counted: { ...missedBoth, ...read(samples.text.length) },
    logged: refused('UNSUPPORTED_MEDIA_TYPE', '/emojis/7.png'),
  },
  'a damaged image': {
    target: '/emojis/8.png',
    line: { ...ofEmoji(8), status: 422, code: 'UNPROCESSABLE_MEDIA', cache: 'miss' },
    spans: [
      absent,
      state,
      'origin .origin.part=body .bytes=60',
      'facts .error.code=UNPROCESSABLE_MEDIA',
    ],
    counted: { ...missedBoth, ...read(60) },
    logged: refused('UNPROCESSABLE_MEDIA', '/emojis/8.png'),
  },
  'one render too many of a client': {
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
        message: 'a client has used up its share of rendering',
        details: { client: '127.0.0.1', requests: 1, windowMs: 60_000 },
      },
    ],
  },
  'one render too many of all': {
    options: () => ({
      settings: { WORKERS: '1', QUEUE_PER_WORKER: '1' },
      renderer: { render: never },
    }),
    before: async (app) => {
      for (const size of [20, 22]) await app.begin(`/icons/1/ab.webp?size=${size}`);
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
  'an origin that fails': {
    ...fails('ORIGIN_ERROR'),
    target: icon,
    line: { ...ofIcon, status: 502, code: 'ORIGIN_ERROR', cache: 'miss' },
    spans: [absent, `${state} ${failed}`],
    counted: { ...missed, 'origin_reads_total{outcome=failed}': 1 },
  },
  'an origin that is late': {
    ...fails('ORIGIN_TIMEOUT'),
    target: icon,
    line: { ...ofIcon, status: 504, code: 'ORIGIN_TIMEOUT', cache: 'miss' },
    spans: [absent, `${state} .error.code=ORIGIN_TIMEOUT error.type=ORIGIN_TIMEOUT`],
    counted: { ...missed, 'origin_reads_total{outcome=timeout}': 1 },
  },
  'an origin that fails after it has responded': {
    before: async (app) => {
      await askIcon(app);
      app.clock.advance(300_000);
      app.originals.failure = new MediaError('ORIGIN_ERROR');
    },
    target: icon,
    line: { ...ofIcon, status: 200, cache: 'stale-if-error' },
    spans: ['store .memory=results .found=true', `${state} ${failed}`],
    counted: {
      'cache_hits_total{cache=results}': 1,
      'origin_reads_total{outcome=failed}': 1,
    },
  },
  'a render with a fault of ours': {
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
  'an upload': {
    method: 'PUT',
    target: () => uploadTarget('attachments/7/7/a'),
    headers: { 'Content-Length': '5' },
    body: 'hello',
    line: {
      resource: 'upload',
      asset: '/v1/relay/attachments/7/7/a',
      status: 200,
      cache: 'none',
      receivedBytes: 5,
    },
    counted: { 'upload_received_bytes_total{}': 5 },
  },
  'an upload that is not permitted': {
    method: 'PUT',
    target: '/v1/relay/attachments/7/7/a?t=x',
    headers: { 'Content-Length': '5' },
    body: 'hello',
    line: {
      resource: 'upload',
      asset: '/v1/relay/attachments/7/7/a',
      status: 401,
      code: 'UNAUTHORIZED',
      cache: 'none',
      receivedBytes: 0,
    },
  },
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
  'another site that may not be asked': {
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
