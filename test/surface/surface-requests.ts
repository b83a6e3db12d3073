/** What a client may send: requests of every shape over one connection, good manners or none. */

import fc from 'fast-check';
import { rows } from './contract-oracle.ts';
import {
  broken,
  type Drawn,
  drawn,
  equivalents,
  foreign,
  hostile,
  spellings,
} from './contract-requests.ts';
import { CHANGED_AT } from './surface-storage.ts';

/** A word that stands in what is sent, wherever it can, and must be in no header that comes back. */
export const MARKER = 'zq7marker';

/** Stands for the entity tag of what is asked for, where it is known. */
export const OWN_TAG = '<own tag>';

export type Header = readonly [name: string, value: string];

/** One request whose framing is sound, so that one answer is due for it. */
export interface SoundRequest {
  readonly kind: 'sound';
  readonly method: string;
  readonly target: string;
  readonly version: '1.1' | '1.0';
  readonly headers: readonly Header[];
  readonly body: Body;
}

/** Bytes that are no request, or one whose framing is not sound. */
export interface UnsoundRequest {
  readonly kind: 'unsound';
  readonly bytes: string;
  /** What was done to it, for whoever reads a failure. */
  readonly fault: string;
  /**
   * The statuses it may be answered with, one after the other; the service then hangs up. Undefined:
   * nobody can tell what the bytes are, and the client hangs up.
   */
  readonly statuses: RegExp | undefined;
}

type Body =
  | { readonly kind: 'none' }
  | { readonly kind: 'length' | 'chunks'; readonly text: string };

/** What is sent over one connection. */
export interface Conversation {
  readonly requests: readonly SoundRequest[];
  /** At its end, if anywhere: nothing can follow it. */
  readonly last: UnsoundRequest | undefined;
  /** All at once, or each after the answer to the one before. */
  readonly isPipelined: boolean;
  /** Where the bytes are cut into packets. */
  readonly cuts: readonly number[];
}

/** Requests of the row for originals that are there, with any parameters. */
function drawnFor(key: string): fc.Arbitrary<Drawn> {
  const parts = key.split('/');
  const row = rows.find(({ originKey }) => {
    const pattern = originKey.split('/');
    return (
      pattern.length === parts.length &&
      pattern.every((part, index) => part.startsWith('{') || part === parts[index])
    );
  });
  if (row === undefined) throw new Error(`no row for ${key}`);
  const names = row.originKey.split('/');
  const values = Object.fromEntries(
    names.flatMap((part, index) =>
      part.startsWith('{') ? [[part.slice(1, -1), parts[index]]] : [],
    ),
  ) as Record<string, string>;
  // Of the parameters the widest choice is drawn; here they are few, so that results meet again.
  const value: Readonly<Record<string, fc.Arbitrary<string>>> = {
    size: fc.constantFrom('16', '128', '4096'),
    width: fc.constantFrom('1', '10', '4096'),
    height: fc.constantFrom('7', '4096'),
    format: fc.constantFrom('png', 'jpg', 'jpeg', 'webp', 'gif'),
    quality: fc.constantFrom('high', 'low', 'lossless'),
    animated: fc.constantFrom('true', 'false'),
  };
  const isSticker = row.query === 'sticker';
  const isExternal = row.query === 'external';
  const asked = isExternal
    ? ['width', 'height', 'format', 'quality', 'animated']
    : ['size', 'quality', 'animated'];
  const parameters = fc.record(
    Object.fromEntries(asked.map((name) => [name, value[name] ?? fc.constant('')])),
    { requiredKeys: [] },
  ) as fc.Arbitrary<Record<string, string>>;
  return fc.record({
    row: fc.constant(row),
    values: fc.constant(values),
    extension: isExternal ? fc.constant(undefined) : fc.constantFrom(...row.extensions),
    parameters: isSticker || !isExternal ? parameters : fc.oneof(fc.constant({}), parameters),
  });
}

/** A target that a request line can hold: nothing but visible ASCII. */
const isWritable = (target: string): boolean => /^[/][!-~]*$|^\*$/.test(target);

function targets(keys: readonly string[]): fc.Arbitrary<string> {
  const known = fc
    .constantFrom(...keys)
    .chain(drawnFor)
    .chain(equivalents)
    .chain(spellings);
  const avatar = fc
    .tuple(fc.nat(7), fc.constantFrom('', '?', '?size=0', '?v=1#x'))
    .map(([index, query]) => `/avatars/${index}.png${query}`);
  return fc.oneof(
    { arbitrary: known, weight: 8 },
    { arbitrary: avatar, weight: 2 },
    { arbitrary: drawn.chain(spellings), weight: 1 },
    { arbitrary: broken.map(({ target }) => target), weight: 2 },
    { arbitrary: foreign, weight: 1 },
    { arbitrary: hostile, weight: 3 },
    {
      arbitrary: fc.constantFrom(
        ...['/attachments/1/2/link', '/attachments/1/3/canary', '/banners/9/canary.png', '/canary'],
        ...['/attachments/1/2/..%2f..%2f..%2fcanary', '/attachments/1/2/../../../../canary'],
        ...[
          '/attachments/..%2f..%2f/..%2f/canary',
          '/%2e%2e/canary',
          '/attachments/1/2/%252e%252e',
        ],
        `/attachments/1/2/${MARKER}`,
        `/avatars/${MARKER}/x.png?size=${MARKER}`,
        `/${MARKER}%0d%0aSet-Cookie:%20${MARKER}`,
        `/attachments/1/2/${MARKER}%0d%0aX-${MARKER}:%201`,
        `/emojis/4.png?size=${MARKER}%0d%0aLocation:%20/`,
      ),
      weight: 2,
    },
  );
}

const method = fc.oneof(
  { arbitrary: fc.constant('GET'), weight: 12 },
  { arbitrary: fc.constant('HEAD'), weight: 4 },
  {
    arbitrary: fc.constantFrom('OPTIONS', 'POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND'),
    weight: 3,
  },
  { arbitrary: fc.constantFrom('QUERY', 'M-SEARCH', 'SOURCE', 'PURGE', 'LINK', 'ACL'), weight: 1 },
);

const seconds = (off: number): Date => new Date(CHANGED_AT.getTime() + off * 1000);
const dates = fc.oneof(
  fc.constantFrom(-86_400, -1, 0, 1, 86_400).map((off) => seconds(off).toUTCString()),
  fc.constantFrom('Tuesday, 14-May-24 10:00:00 GMT', 'Tue May 14 10:00:00 2024', 'yesterday', '0'),
  fc.constantFrom('Tue, 14 May 2024 10:00:00 +0000', 'Fri, 31 Dec 9999 23:59:59 GMT', ''),
);
const tags = fc.constantFrom(
  ...[OWN_TAG, OWN_TAG, `W/${OWN_TAG}`, `"x", ${OWN_TAG}`, `${OWN_TAG}, "x"`, `,, ${OWN_TAG} ,`],
  ...['*', '"x"', 'W/"x"', '"', 'x', '', `${OWN_TAG} ${OWN_TAG}`, '\u00a0*', '*, "x"', '"\u00ff"'],
);
const number = fc
  .oneof(fc.nat(60), fc.constantFrom(0, 40, 4100, 299_999, 300_000, 2 ** 53))
  .map(String);
const ranges = fc.oneof(
  fc.tuple(number, number).map(([first, last]) => `bytes=${first}-${last}`),
  number.map((first) => `bytes=${first}-`),
  number.map((last) => `bytes=-${last}`),
  fc.constantFrom('bytes=0-', 'bytes=-0', 'bytes=', 'bytes=5-2', 'bytes=0-1,3-4', 'items=0-1', 'x'),
  fc.constantFrom(
    'bytes=,0-1 ,',
    'BYTES=1-1',
    `bytes=${'9'.repeat(300)}-`,
    `bytes=-${'9'.repeat(300)}`,
  ),
);
const harmless = fc.constantFrom<Header>(
  ['Cache-Control', 'no-cache'],
  ['Cache-Control', 'no-store, max-age=0, only-if-cached'],
  ['Pragma', 'no-cache'],
  ['Accept', 'image/avif,image/webp,*/*;q=0.8'],
  ['Accept', 'application/x-none'],
  ['Accept-Encoding', 'br, gzip, *;q=0'],
  ['Accept-Encoding', 'identity;q=0'],
  ['Authorization', `Bearer ${MARKER}`],
  ['Proxy-Authorization', `Basic ${MARKER}`],
  ['Cookie', `a=${MARKER}; b="${MARKER}"`],
  ['Origin', `https://${MARKER}.example`],
  ['Origin', 'null'],
  ['Referer', `http://${MARKER}/?q=<script>`],
  ['User-Agent', `() { :; }; ${MARKER}`],
  ['X-Forwarded-For', `203.0.113.7, ${MARKER}`],
  ['X-Forwarded-Host', `${MARKER}.example`],
  ['X-Forwarded-Proto', 'javascript'],
  ['X-Forwarded-Prefix', `/${MARKER}`],
  ['Forwarded', `for=${MARKER};host=${MARKER}`],
  ['X-Real-IP', '127.0.0.1'],
  ['X-Original-URL', '/avatars/0.png'],
  ['X-Rewrite-URL', `/${MARKER}`],
  ['X-HTTP-Method-Override', 'DELETE'],
  ['X-Request-Id', MARKER],
  ['Traceparent', `00-${MARKER}-00-01`],
  ['Access-Control-Request-Method', 'DELETE'],
  ['Access-Control-Request-Headers', `X-${MARKER}, authorization`],
  ['Access-Control-Request-Private-Network', 'true'],
  ['If-Match', '"x"'],
  ['If-Unmodified-Since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
  ['TE', 'trailers, deflate'],
  ['Trailer', MARKER],
  ['Via', `1.1 ${MARKER}`],
  ['Max-Forwards', '0'],
  ['Upgrade', 'h2c, websocket'],
  ['HTTP2-Settings', 'AAMAAABkAARAAAAAAAIAAAAA'],
  ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
  ['Content-Type', `text/html; ${MARKER}`],
  ['Content-Type', 'application/json'],
  ['Range-Unit', 'bytes'],
  ['Expect', '100-continue'],
  [`X-${MARKER}`, `${MARKER} \u00e9\u00ff\u0080\t"`],
  ['__proto__', MARKER],
  ['constructor', MARKER],
  ['X-Empty', ''],
  ['X-Long', `${MARKER}${'x'.repeat(7_000)}`],
);
const conditions = fc.oneof(
  ranges.map((value): Header => ['Range', value]),
  tags.map((value): Header => ['If-None-Match', value]),
  dates.map((value): Header => ['If-Modified-Since', value]),
  fc.oneof(tags, dates).map((value): Header => ['If-Range', value]),
);
const casing = fc.constantFrom<(name: string) => string>(
  (name) => name,
  (name) => name.toLowerCase(),
  (name) => name.toUpperCase(),
);
const headers = fc
  .tuple(fc.array(fc.oneof(conditions, harmless), { maxLength: 6 }), casing)
  .map(([all, spell]) => all.map(([name, value]): Header => [spell(name), value]));
const host = fc.oneof(
  fc.constant('cdn.example'),
  fc.constantFrom('', 'localhost:1', `${MARKER}.example`, '[::1]:80', '127.0.0.1', 'a'.repeat(300)),
  fc.constantFrom('%0d%0a', '..', "a;b='c'"),
);
const connection = fc.oneof(
  { arbitrary: fc.constant(undefined), weight: 8 },
  {
    arbitrary: fc.constantFrom('keep-alive', 'close', 'Close', 'upgrade', 'x, close', MARKER),
    weight: 1,
  },
);
const smuggled = `GET /attachments/1/2/romeo.txt HTTP/1.1\r\nHost: ${MARKER}\r\n\r\n`;
const body = fc.oneof(
  { arbitrary: fc.constant<Body>({ kind: 'none' }), weight: 6 },
  {
    arbitrary: fc.record({
      kind: fc.constantFrom('length' as const, 'chunks' as const),
      text: fc.constantFrom('', 'x', smuggled, '0\r\n\r\n', '{"a":', '\0\r\n'.repeat(200)),
    }),
    weight: 1,
  },
);

function soundRequests(keys: readonly string[]): fc.Arbitrary<SoundRequest> {
  return (
    fc
      .record({
        kind: fc.constant('sound' as const),
        method,
        target: targets(keys).filter(isWritable),
        version: fc.constantFrom<'1.1' | '1.0'>('1.1', '1.1', '1.1', '1.1', '1.1', '1.0'),
        headers,
        body,
        host,
        connection,
      })
      .map(({ host: name, connection: wish, ...request }) => ({
        ...request,
        headers: [
          ['Host', name] as const,
          ...request.headers,
          ...(wish === undefined || (wish === 'keep-alive' && request.version === '1.0')
            ? []
            : [['Connection', wish] as const]),
        ],
      }))
      // Chunks came with HTTP/1.1; and past 16 KB of head it is another story, told below.
      .filter(({ version, body: { kind } }) => version === '1.1' || kind !== 'chunks')
      .filter((request) => formatRequest(request).length < 15_000)
  );
}

/** Writes a request as it goes over the wire; `ownTag` is what `OWN_TAG` stands for. */
export function formatRequest(request: SoundRequest, ownTag = '"unknown"'): Buffer {
  const { method: verb, target, version, headers: given, body: sent } = request;
  const framing =
    sent.kind === 'none'
      ? []
      : sent.kind === 'length'
        ? [`Content-Length: ${sent.text.length}`]
        : ['Transfer-Encoding: chunked'];
  const lines = given.map(([name, value]) => `${name}: ${value.replaceAll(OWN_TAG, ownTag)}`);
  const payload =
    sent.kind === 'none'
      ? ''
      : sent.kind === 'length'
        ? sent.text
        : `${sent.text === '' ? '' : `${sent.text.length.toString(16)}\r\n${sent.text}\r\n`}0\r\n\r\n`;
  const head = [`${verb} ${target} HTTP/${version}`, ...lines, ...framing].join('\r\n');
  return Buffer.from(`${head}\r\n\r\n${payload}`, 'latin1');
}

/** Refused, in words; or, while the answer to its head is under way, by hanging up. */
const REFUSED = /^(?:400|431)$/;
const REFUSED_LATE = /^(?:(?:200|405) ?)?(?:400)?$/;
/** Refused as what it is, or, where its line came in pieces, as no HTTP: `raw-requests.test.ts` sends it in one. */
const UNKNOWN_METHOD = /^40[05]$/;
const UNKNOWN_METHOD_AND_PATH = /^40[04]$/;

const unsoundForms: readonly (readonly [fault: string, bytes: string, statuses?: RegExp])[] = [
  ['lower-case method', `get /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n`, UNKNOWN_METHOD],
  ['unknown method', `${MARKER} /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n`, UNKNOWN_METHOD],
  [
    'unknown method of no path',
    `${MARKER} /x HTTP/1.1\r\nHost: a\r\n\r\n`,
    UNKNOWN_METHOD_AND_PATH,
  ],
  [
    'very long method',
    `${'G'.repeat(9_000)} / HTTP/1.1\r\nHost: a\r\n\r\n`,
    UNKNOWN_METHOD_AND_PATH,
  ],
  ['unknown method, version and all', `${MARKER} /avatars/0.png HTTP/3.7\r\nHost: a\r\n\r\n`],
  ['CONNECT', 'CONNECT cdn.example:443 HTTP/1.1\r\nHost: a\r\n\r\n', /^405$/],
  ['unknown version', 'GET /avatars/0.png HTTP/3.7\r\nHost: a\r\n\r\n'],
  ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['TLS', '\u0016\u0003\u0001\u0002\0\u0001\0\u0001\u00fc\u0003\u0003'.padEnd(600, '\0')],
  ['space in the target', 'GET /attachments/1/2/a b HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['raw UTF-8 in the target', 'GET /attachments/1/2/\u00c3\u00a9 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['NUL in the target', 'GET /attachments/1/2/\0 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['no slash', `GET ${MARKER} HTTP/1.1\r\nHost: a\r\n\r\n`],
  ['bare line feeds', 'GET /avatars/0.png HTTP/1.1\nHost: a\n\n'],
  [
    'CR in a header',
    `GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nX: a\rSet-Cookie: ${MARKER}\r\n\r\n`,
  ],
  [
    'LF in a header',
    `GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nX: a\nSet-Cookie: ${MARKER}\r\n\r\n`,
  ],
  ['NUL in a header', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n'],
  ['folded header', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n'],
  ['header without colon', `GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n${MARKER}\r\n\r\n`],
  ['header without name', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n'],
  ['space before the colon', 'GET /avatars/0.png HTTP/1.1\r\nHost : a\r\n\r\n'],
  ['byte above 0x7f in a name', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nX\u00e9: a\r\n\r\n'],
  [
    'two lengths',
    'POST /emojis/4.png HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    REFUSED_LATE,
  ],
  [
    'length and chunks',
    `POST /emojis/4.png HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    REFUSED_LATE,
  ],
  ['length of no number', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx'],
  ['negative length', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n'],
  [
    'huge length',
    `GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nContent-Length: ${'9'.repeat(40)}\r\n\r\n`,
  ],
  [
    'odd coding',
    'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n',
    REFUSED_LATE,
  ],
  [
    'coding twice',
    'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n',
    REFUSED_LATE,
  ],
  [
    'chunk of no number',
    `POST /emojis/4.png HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n${smuggled}`,
    REFUSED_LATE,
  ],
  ['no host', 'GET /avatars/0.png HTTP/1.1\r\n\r\n'],
  [
    'unknown expectation',
    'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nExpect: x\r\nConnection: close\r\n\r\n',
    /^200$/,
  ],
  ['two hosts', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n'],
  ...['cdn.example/../x', '<script>', 'a b', '\u00ff', 'a@b', 'a, b'].map(
    (name) => [`the host ${name}`, `GET /avatars/0.png HTTP/1.1\r\nHost: ${name}\r\n\r\n`] as const,
  ),
  ['very long target', `GET /attachments/1/2/${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
  ['very long query', `GET /avatars/0.png?${'v=1&'.repeat(6_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
  [
    'very long header',
    `GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
  ],
  [
    'many headers',
    `GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n${'X-Name: some value\r\n'.repeat(2_000)}\r\n`,
  ],
  [
    'many cookies',
    `GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n${`Cookie: ${MARKER}\r\n`.repeat(1_500)}\r\n`,
  ],
];

/** Requests that are no HTTP: told forms, hostile targets as raw bytes, and noise. */
function unsoundRequests(keys: readonly string[]): fc.Arbitrary<UnsoundRequest> {
  const latin1 = fc.string({
    unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  });
  const raw = fc
    .oneof(hostile, targets(keys), latin1)
    .map((target) => Buffer.from(target, 'utf8').toString('latin1'))
    .filter((target) => !isWritable(target))
    .map((target) => ({ fault: 'raw target', bytes: `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n` }));
  const edited = fc
    .tuple(
      soundRequests(keys),
      fc.nat(400),
      fc.nat(3),
      fc.oneof(latin1, fc.constantFrom('\r\n', '\n', ' ')),
    )
    .map(([request, at, length, piece]) => {
      const bytes = formatRequest(request).toString('latin1');
      return { fault: 'edited', bytes: bytes.slice(0, at) + piece + bytes.slice(at + length) };
    });
  return fc
    .oneof(
      {
        arbitrary: fc
          .constantFrom(...unsoundForms)
          .map(([fault, bytes, statuses = REFUSED]) => ({ fault, bytes, statuses })),
        weight: 4,
      },
      { arbitrary: raw, weight: 2 },
      { arbitrary: edited, weight: 2 },
      { arbitrary: latin1.map((bytes) => ({ fault: 'noise', bytes })), weight: 1 },
    )
    .map((request) => ({ kind: 'unsound' as const, statuses: undefined, ...request }));
}

/** Conversations about these originals, and about all else. */
export function conversations(keys: readonly string[]): fc.Arbitrary<Conversation> {
  return fc.record({
    requests: fc.array(soundRequests(keys), { maxLength: 5 }),
    last: fc.option(unsoundRequests(keys), { nil: undefined, freq: 3 }),
    isPipelined: fc.boolean(),
    cuts: fc.array(fc.nat(1_500), { maxLength: 4 }),
  });
}
