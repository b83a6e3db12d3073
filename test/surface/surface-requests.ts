/** Requests that a client sends over one connection, valid or malformed. */

import fc from 'fast-check';
import { type Row, rows, type ValidParts } from './contract-oracle.ts';
import {
  broken,
  drawn,
  equivalents,
  extensionOf,
  foreign,
  hostile,
  parametersOf,
  parameterValues,
  spellings,
  weighted,
} from './contract-requests.ts';
import { get, line, malformedMessages } from './malformed-messages.ts';
import { CHANGED_AT } from './surface-storage.ts';

/** A word in all parts of requests that must not appear in a response header. */
export const MARKER = 'zq7marker';

/** Placeholder for the entity tag of the requested media. */
const OWN_TAG = '<own tag>';

export type Header = readonly [name: string, value: string];

/** A request with valid framing, which must get one response. */
export interface ValidRequest {
  readonly kind: 'sound';
  readonly method: string;
  readonly target: string;
  readonly version: '1.1' | '1.0';
  readonly headers: readonly Header[];
  readonly body: Body;
  /** Expected error of an upload that is invalid by itself. */
  readonly refused?: readonly [status: number, code: string];
}

/** Bytes that are not a request, or one with invalid framing. */
export interface MalformedMessage {
  readonly kind: 'malformed';
  readonly bytes: string;
  /** Description for the report of a failure. */
  readonly fault: string;
  /** Permitted statuses of its responses, before the service closes the connection. Omit if the client must close it. */
  readonly statuses: RegExp | undefined;
}

type Body =
  | { readonly kind: 'none' }
  | { readonly kind: 'length' | 'chunks'; readonly text: string };

export interface Conversation {
  readonly requests: readonly ValidRequest[];
  /** Malformed bytes at the end of the conversation. */
  readonly last: MalformedMessage | undefined;
  /** Whether all requests are sent at once, or each after the previous response. */
  readonly isPipelined: boolean;
  /** Positions at which the bytes are split into packets. */
  readonly cuts: readonly number[];
}

/** Fewer values than the contract has, so that results repeat. */
export const fewValues = {
  ...parameterValues,
  size: fc.constantFrom('16', '128', '4096'),
  width: fc.constantFrom('1', '10', '4096'),
  height: fc.constantFrom('7', '4096'),
};

/** Requests for an existing original with any parameters. */
export function drawnFor(key: string): fc.Arbitrary<ValidParts> {
  const valuesIn = ({ originKey }: Row) =>
    new RegExp(`^${originKey.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`).exec(key)?.groups;
  const row = rows.find(valuesIn);
  if (row === undefined) throw new Error(`no row for ${key}`);
  const parameters = parametersOf(row, fewValues);
  return fc.record({
    row: fc.constant(row),
    values: fc.constant(valuesIn(row) ?? {}),
    extension: extensionOf(row),
    parameters: row.query === 'external' ? fc.oneof(fc.constant({}), parameters) : parameters,
  });
}

/** Whether a request line can contain a target: only visible ASCII, absolute or not. */
const isWritable = (target: string): boolean =>
  /^(?:https?:\/\/(?:user@)?cdn\.example(?::8443)?)?[/][!-~]*$|^\*$/i.test(target);

/** Targets of existing originals, and others. */
export function targets(keys: readonly string[]): fc.Arbitrary<string> {
  const known = fc
    .constantFrom(...keys)
    .chain(drawnFor)
    .chain(equivalents)
    .chain(spellings);
  const avatar = fc
    .tuple(fc.nat(7), fc.constantFrom('', '?', '?size=0', '?v=1#x'))
    .map(([index, query]) => `/avatars/${index}.png${query}`);
  const tricks = `
    /attachments/1/2/link /attachments/1/3/canary /banners/9/canary.png /canary /%2e%2e/canary
    /attachments/1/2/..%2f..%2f..%2fcanary /attachments/1/2/../../../../canary
    /attachments/..%2f..%2f/..%2f/canary /attachments/1/2/%252e%252e /external/ /external/x/y
    /external/x/https/a.example/ /v1/relay/emojis/1?t=x /v1/relay /V1/relay/x
    /attachments/1/2/${MARKER} /avatars/${MARKER}/x.png?size=${MARKER}
    /${MARKER}%0d%0aSet-Cookie:%20${MARKER} /attachments/1/2/${MARKER}%0d%0aX-${MARKER}:%201
    /emojis/4.png?size=${MARKER}%0d%0aLocation:%20/`;
  return weighted(
    [8, known],
    [2, avatar],
    [1, drawn.chain(spellings)],
    [2, broken.map(({ target }) => target)],
    [1, foreign],
    [3, hostile],
    [2, fc.constantFrom(...tricks.trim().split(/\s+/))],
  );
}

const method = weighted(
  [12, fc.constant('GET')],
  [4, fc.constant('HEAD')],
  [2, fc.constant('OPTIONS')],
  [2, fc.constantFrom('POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND')],
  [1, fc.constantFrom('QUERY', 'M-SEARCH', 'SOURCE', 'PURGE', 'LINK', 'ACL')],
);

const seconds = (off: number): Date => new Date(CHANGED_AT.getTime() + off * 1000);
const dates = fc.oneof(
  fc.constantFrom(-86_400, -1, 0, 1, 86_400).map((off) => seconds(off).toUTCString()),
  fc.constantFrom('Tuesday, 14-May-24 10:00:00 GMT', 'Tue May 14 10:00:00 2024', 'yesterday', '0'),
  fc.constantFrom('Tue, 14 May 2024 10:00:00 +0000', 'Fri, 31 Dec 9999 23:59:59 GMT', ''),
);
const gap = fc.constantFrom(',', ', ', ' , ', ',,', '\t,\t ', ' ', '', ';', '\u00a0,');
const tag = fc.constantFrom(OWN_TAG, `W/${OWN_TAG}`, '"a,b"', '""', 'W/"\u00fc!#~"', '"\\"', '*');
const tagLists = fc
  .array(fc.tuple(tag, gap), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.flat().join(''));
const tags = fc.oneof(
  tagLists,
  fc.constantFrom(
    ...[OWN_TAG, OWN_TAG, `W/${OWN_TAG}`, `"x", ${OWN_TAG}`, `${OWN_TAG}, "x"`, `,, ${OWN_TAG} ,`],
    ...['*', 'W/"x"', '"', 'x', '', '\u00a0*', '"\u00ff"', `${OWN_TAG} ${OWN_TAG}`],
  ),
);
const number = fc
  .oneof(fc.nat(60), fc.constantFrom(0, 40, 4100, 299_999, 300_000, 2 ** 53))
  .map(String);
const comma = fc.constantFrom(',', ' ,', ', ', ',\t', ', ,', ' ', '', '\u00a0,');
const digits = fc.oneof(number, fc.constantFrom('', '00', '007', '1.5', '+1'));
const ranges = fc.oneof(
  fc
    .tuple(fc.constantFrom('bytes=', 'Bytes=', 'bytes ='), comma, digits, digits, comma)
    .map(([unit, before, first, last, after]) => `${unit}${before}${first}-${last}${after}`),
  fc.string({ unit: fc.constantFrom(...'=,- \t0199\u00a0') }).map((tail) => `bytes=${tail}`),
  fc.tuple(number, number).map(([first, last]) => `bytes=${first}-${last}`),
  number.map((first) => `bytes=${first}-`),
  number.map((last) => `bytes=-${last}`),
  fc.constantFrom(
    ...['bytes=0-', 'bytes=-0', 'bytes=', 'bytes=5-2', 'bytes=0-1,3-4', 'items=0-1', 'x'],
    ...['bytes=,0-1 ,', 'BYTES=1-1', `bytes=${'9'.repeat(300)}-`, `bytes=-${'9'.repeat(300)}`],
  ),
);

/** Headers without effect, with values. */
const harmless = fc.constantFrom(
  ...Object.entries({
    'Cache-Control': ['no-cache', 'no-store, max-age=0, only-if-cached'],
    Accept: ['image/avif,image/webp,*/*;q=0.8', 'application/x-none'],
    'Accept-Encoding': ['br, gzip, *;q=0', 'identity;q=0'],
    Authorization: [`Bearer ${MARKER}`],
    Cookie: [`a=${MARKER}; b="${MARKER}"`],
    Origin: [`https://${MARKER}.example`, 'null'],
    Referer: [`http://${MARKER}/?q=<script>`],
    'User-Agent': [`() { :; }; ${MARKER}`],
    'X-Forwarded-For': [`203.0.113.7, ${MARKER}`],
    'X-Forwarded-Host': [`${MARKER}.example`],
    'X-Forwarded-Proto': ['javascript'],
    Forwarded: [`for=${MARKER};host=${MARKER}`],
    'X-Real-IP': ['127.0.0.1'],
    'X-Original-URL': ['/avatars/0.png'],
    'X-HTTP-Method-Override': ['DELETE'],
    'X-Request-Id': [MARKER],
    Traceparent: [`00-${MARKER}-00-01`],
    'Access-Control-Request-Method': ['DELETE'],
    'Access-Control-Request-Headers': [`X-${MARKER}, authorization`],
    'Access-Control-Request-Private-Network': ['true'],
    TE: ['trailers, deflate'],
    Trailer: [MARKER],
    Via: [`1.1 ${MARKER}`],
    Upgrade: ['h2c, websocket'],
    'Content-Type': [`text/html; ${MARKER}`, 'application/json'],
    Expect: ['100-continue'],
    [`X-${MARKER}`]: [`${MARKER} \u00e9\u00ff\u0080\t"`],
    ['__proto__']: [MARKER],
    constructor: [MARKER],
    'X-Long': [`${MARKER}${'x'.repeat(7_000)}`],
  }).flatMap(([name, values]) => values.map((value): Header => [name, value])),
);
const conditions = fc.oneof(
  ...[1, 2, 3].map(() => ranges.map((value): Header => ['Range', value])),
  tags.map((value): Header => ['If-None-Match', value]),
  dates.map((value): Header => ['If-Modified-Since', value]),
  fc.oneof(
    tags.map((value): Header => ['If-Match', value]),
    dates.map((value): Header => ['If-Unmodified-Since', value]),
  ),
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
const connection = weighted<string | undefined>(
  [8, fc.constant(undefined)],
  [1, fc.constantFrom('keep-alive', 'close', 'Close', 'upgrade', 'x, close', MARKER)],
);
const smuggled = `GET /attachments/1/2/romeo.txt HTTP/1.1\r\nHost: ${MARKER}\r\n\r\n`;
const payload = fc.record({
  kind: fc.constantFrom('length' as const, 'chunks' as const),
  text: fc.constantFrom('', 'x', smuggled, '0\r\n\r\n', '{"a":', '\0\r\n'.repeat(200)),
});
const body = weighted<Body>([6, fc.constant({ kind: 'none' })], [1, payload]);

function validRequests(target: fc.Arbitrary<string>): fc.Arbitrary<ValidRequest> {
  return (
    fc
      .record({
        kind: fc.constant('sound' as const),
        method,
        target: target.filter(isWritable),
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
      // HTTP/1.0 has no chunks; heads of more than 16 KB are among the malformed messages.
      .filter(({ version, body: { kind } }) => version === '1.1' || kind !== 'chunks')
      .filter((request) => formatRequest(request).length < 15_000)
  );
}

/** Formats a request, with `ownTag` for `OWN_TAG`. */
export function formatRequest(request: ValidRequest, ownTag = '"unknown"'): Buffer {
  const lines = request.headers.map(
    ([name, value]) => `${name}: ${value.replaceAll(OWN_TAG, ownTag)}`,
  );
  const { framing, payload } = frameBody(request.body);
  const first = `${request.method} ${request.target} HTTP/${request.version}`;
  return Buffer.from(`${[first, ...lines, ...framing].join('\r\n')}\r\n\r\n${payload}`, 'latin1');
}

function frameBody(sent: Body): { readonly framing: readonly string[]; readonly payload: string } {
  if (sent.kind === 'none') return { framing: [], payload: '' };
  const { kind, text } = sent;
  if (kind === 'length') return { framing: [`Content-Length: ${text.length}`], payload: text };
  const chunk = text === '' ? '' : `${text.length.toString(16)}\r\n${text}\r\n`;
  return { framing: ['Transfer-Encoding: chunked'], payload: `${chunk}0\r\n\r\n` };
}

/** A 400 or, during the response to its head, a closed connection. */
const REFUSED = /^(?:400|431)$/;
const REFUSED_LATE = /^(?:(?:200|405) ?)?(?:400)?$/;
/** A specific error or, if its line arrives in pieces, a 400: `request-smuggling.test.ts` sends it in one piece. */
const UNKNOWN_METHOD = /^40[05]$/;
const UNKNOWN_METHOD_AND_PATH = /^40[04]$/;

const malformedForms: readonly (readonly [fault: string, bytes: string, statuses?: RegExp])[] = [
  ...malformedMessages.map(
    ([fault, bytes]) =>
      [fault, bytes, bytes.includes('Transfer-Encoding') ? REFUSED_LATE : REFUSED] as const,
  ),
  ['lower-case method', line('get /avatars/0.png HTTP/1.1'), UNKNOWN_METHOD],
  ['unknown method', line(`${MARKER} /avatars/0.png HTTP/1.1`), UNKNOWN_METHOD],
  ['unknown method, unknown path', line(`${MARKER} /x HTTP/1.1`), UNKNOWN_METHOD_AND_PATH],
  ['very long method', line(`${'G'.repeat(9_000)} / HTTP/1.1`), UNKNOWN_METHOD_AND_PATH],
  // A CONNECT can prevent pending responses; it then has no response either.
  ['CONNECT', line('CONNECT cdn.example:443 HTTP/1.1'), /^(?:405)?$/],
  ['no slash', line(`GET ${MARKER} HTTP/1.1`)],
  ['CR in a header', get(`X: a\rSet-Cookie: ${MARKER}\r\n`)],
  ['LF in a header', get(`X: a\nSet-Cookie: ${MARKER}\r\n`)],
  ['unknown expectation', get('Expect: x\r\nConnection: close\r\n'), /^200$/],
  ['very long target', line(`GET /attachments/1/2/${'x'.repeat(20_000)} HTTP/1.1`)],
  ['very long query', line(`GET /avatars/0.png?${'v=1&'.repeat(6_000)} HTTP/1.1`)],
  ['very long header', get(`X: ${'x'.repeat(20_000)}\r\n`)],
  ['many headers', get('X-Name: some value\r\n'.repeat(2_000))],
  ['many cookies', get(`Cookie: ${MARKER}\r\n`.repeat(1_500))],
];

/** Invalid HTTP: named forms, hostile targets as raw bytes, and noise. */
function malformedRequests(target: fc.Arbitrary<string>): fc.Arbitrary<MalformedMessage> {
  const latin1 = fc.string({
    unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  });
  const raw = fc
    .oneof(hostile, target, latin1)
    .map((text) => Buffer.from(text, 'utf8').toString('latin1'))
    .filter((text) => !isWritable(text))
    .map((text) => ({ fault: 'raw target', bytes: `GET ${text} HTTP/1.1\r\nHost: a\r\n\r\n` }));
  const edited = fc
    .tuple(
      validRequests(target),
      fc.nat(400),
      fc.nat(3),
      fc.oneof(latin1, fc.constantFrom('\r\n', '\n', ' ')),
    )
    .map(([request, at, length, piece]) => {
      const bytes = formatRequest(request).toString('latin1');
      return { fault: 'edited', bytes: bytes.slice(0, at) + piece + bytes.slice(at + length) };
    });
  const formed = fc
    .constantFrom(...malformedForms)
    .map(([fault, bytes, statuses = REFUSED]) => ({ fault, bytes, statuses }));
  const noise = latin1.map((bytes) => ({ fault: 'noise', bytes }));
  return weighted<Omit<MalformedMessage, 'kind' | 'statuses'>>(
    [4, formed],
    [2, raw],
    [2, edited],
    [1, noise],
  ).map((request) => ({ kind: 'malformed', statuses: undefined, ...request }));
}

export const isUpload = ({ method, target }: ValidRequest): boolean =>
  method === 'PUT' && target.startsWith('/v1/relay/');

/** Conditions and ranges that a careless parser misreads. */
const headerExamples: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['Range', ['bytes=0-0', 'bytes=2-', 'BYTES=5-99', 'bytes=-5', 'bytes=007-008', 'bytes=-000']],
  [
    'Range',
    ['bytes=-', 'bytes= 0-1', 'bytes=0--1', 'bytes=0-1,3-4', 'bytes=0-1;q=1', 'xbytes=0-1'],
  ],
  // Empty list elements are ignored (RFC 9110 §5.6.1.2).
  ['Range', ['bytes= , ,\t0-1', 'bytes=0-1 ,\t, ', 'bytes=9007199254740993-9007199254740992']],
  ['If-None-Match', [OWN_TAG, `W/${OWN_TAG}`, ' * ', `"a,b", ${OWN_TAG}`, `, ,${OWN_TAG},,`]],
  ['If-None-Match', [`w/${OWN_TAG}`, `*, ${OWN_TAG}`, `${OWN_TAG} "x"`, `${OWN_TAG}, x`, 'abc']],
  ['If-None-Match', [`"a bc", ${OWN_TAG}`, `"\u00fc", ${OWN_TAG}`, `\u00a0${OWN_TAG}`]],
  ['If-Modified-Since', ['Tue May 14 09:59:59 2024', 'Tuesday, 14-May-24 10:00:00 GMT']],
  ['If-Modified-Since', ['2024-05-14T10:00:00Z', 'Mon, 30 Feb 2099 00:00:00 GMT']],
  ['If-Match', [OWN_TAG, `W/${OWN_TAG}`, ' * ', '"x"', `"x", ${OWN_TAG}`, `, ,${OWN_TAG},,`, '']],
  ['If-Match', [`w/${OWN_TAG}`, `*, ${OWN_TAG}`, `W/"x", ${OWN_TAG}`, `${OWN_TAG} "x"`, 'abc']],
  ['If-Unmodified-Since', ['Tue May 14 09:59:59 2024', 'Tuesday, 14-May-24 10:00:00 GMT', '0']],
  ['If-Range', [OWN_TAG, `W/${OWN_TAG}`, `${OWN_TAG}, "x"`, `${OWN_TAG}x`, '*', 'x', '']],
  ['If-Range', [-1, 0, 1].map((off) => seconds(off).toUTCString())],
];

export const plainGet = (
  target: string,
  headers: readonly Header[] = [['Host', 'a']],
): ValidRequest => {
  return { kind: 'sound', method: 'GET', target, version: '1.1', headers, body: { kind: 'none' } };
};

export const inOne = (request: ValidRequest): Conversation => {
  return { requests: [request], last: undefined, isPipelined: false, cuts: [] };
};

/** One request for each of these. */
export const headerConversations: readonly Conversation[] = headerExamples
  .flatMap(([name, values]) => values.map((value): Header => [name, value]))
  .flatMap((header) => {
    const host = ['Host', 'a'] as const;
    const range = header[0] === 'If-Range' ? [['Range', 'bytes=1-2'] as const] : [];
    // A suffix of an empty body is satisfiable, but Content-Range cannot express it.
    const names = header[0] === 'Range' ? ['romeo.txt', 'empty'] : ['romeo.txt'];
    return names.map((name) =>
      inOne(plainGet(`/attachments/1/2/${name}`, [host, ...range, header])),
    );
  });

/** One conversation for each form of invalid HTTP; the bytes after it are not read. */
export const malformedConversations: readonly Conversation[] = malformedForms.map(
  ([fault, bytes, statuses = REFUSED]) => {
    const last = { kind: 'malformed', fault, bytes: bytes + get(''), statuses } as const;
    return { requests: [], last, isPipelined: false, cuts: [] };
  },
);

export function conversations(
  target: fc.Arbitrary<string>,
  uploads?: fc.Arbitrary<ValidRequest>,
): fc.Arbitrary<Conversation> {
  const sound = validRequests(target);
  const request = uploads === undefined ? sound : weighted([3, sound], [1, uploads]);
  return fc
    .record({
      requests: fc.array(request, { maxLength: 5 }),
      last: fc.option(malformedRequests(target), { nil: undefined, freq: 3 }),
      isPipelined: fc.boolean(),
      cuts: fc.array(fc.nat(1_500), { maxLength: 4 }),
    })
    .map((conversation) => {
      // Pipelined uploads would race for a key.
      const isPipelined = conversation.isPipelined && !conversation.requests.some(isUpload);
      return { ...conversation, isPipelined };
    });
}
