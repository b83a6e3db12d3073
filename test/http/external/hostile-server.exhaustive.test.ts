import { Readable } from 'node:stream';
import { deflateSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { outcomeOf, SITE, useExternalApp } from '../../support/sites/external-app.ts';
import { type Behaviour, trickle, useHostileServer } from '../../support/sites/hostile-server.ts';
import { samples } from '../../support/test-app.ts';

/** Result for a client: a status, or `cut` for an aborted response. */
type Outcome = Awaited<ReturnType<typeof outcomeOf>>;

const { jpeg } = samples;
/** A GIF of one pixel. */
const dot = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
const lengthField = `Content-Length: ${jpeg.length}\r\n`;

const bareHead = 'HTTP/1.1 200 OK\r\n\r\n';
const completeHead = `HTTP/1.1 200 OK\r\n${lengthField}\r\n`;
const chunkedHead = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

type Pieces = readonly (string | Uint8Array)[];

/** Sends these bytes and keeps the connection open. */
const begin =
  (...pieces: Pieces): Behaviour =>
  (socket) => {
    for (const piece of pieces) socket.write(piece);
  };

/** Sends these bytes and closes the connection. */
const send =
  (...pieces: Pieces): Behaviour =>
  (socket) =>
    void Readable.from(pieces).pipe(socket);

/** Sends these bytes, then repeats a piece as fast as possible. */
const endless =
  (piece: string | Uint8Array, ...before: Pieces): Behaviour =>
  (socket) => {
    const pieces = function* () {
      yield* before;
      for (;;) yield piece;
    };
    Readable.from(pieces()).pipe(socket);
  };

const respond = (head: string, body: Uint8Array | string = ''): Behaviour =>
  begin(`HTTP/1.1 ${head}\r\n`, body);

const picture = (fields: string, body: Uint8Array = jpeg): Behaviour =>
  send(`HTTP/1.1 200 OK\r\n${fields}\r\n`, body);

const status = (code: number, fields = ''): Behaviour =>
  respond(`${code} Reason\r\nContent-Length: 0\r\n${fields}`);

const chunked = (...chunks: Pieces): Behaviour => send(chunkedHead, ...chunks);

const asChunk = (bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);

const statuses = [
  ...[201, 202, 203, 204, 205, 207, 226, 300, 304, 305, 306, 400, 401, 402, 403, 405, 406, 407],
  ...[408, 409, 412, 413, 414, 416, 418, 421, 425, 426, 429, 451, 500, 501, 502, 503, 504, 505],
  ...[507, 511, 599, 999],
];

const kinds: Readonly<Record<string, Uint8Array>> = {
  html: samples.html,
  svg: samples.svg,
  pdf: samples.pdf,
  text: samples.text,
  bmp: Buffer.concat([Buffer.from('BM'), Buffer.alloc(5_000)]),
  'little-endian TIFF': Buffer.concat([Buffer.from('II*\0\x08\0\0\0'), Buffer.alloc(5_000)]),
  ico: Buffer.concat([Buffer.from([0, 0, 1, 0, 1, 0, 16, 16]), Buffer.alloc(5_000)]),
  json: Buffer.from('{"a":1}'),
  zip: Buffer.concat([Buffer.from('PK\x03\x04'), Buffer.alloc(5_000)]),
  nothing: Buffer.alloc(0),
  zeros: Buffer.alloc(5_000),
  'a playlist': Buffer.from('#EXTM3U\n#EXTINF:1,\nhttp://169.254.169.254/\n'),
};

const encodings = [
  ...['gzip', 'GZIP', 'x-gzip', 'br', 'deflate', 'zstd', 'identity, gzip', 'nonsense'],
  'gzip\r\nContent-Encoding: gzip',
];

const redirects = [
  ...['file:///etc/passwd', 'data:image/gif;base64,R0lGODlhAQABAAAAACw=', 'ftp://site.test/'],
  ...['javascript:alert(1)', 'http://user:secret@site.test/', 'http://site.test:22/'],
  ...['http://localhost/', '//169.254.169.254/', 'http://10.0.0.1/', 'https://[::1]/'],
  ...['///127.0.0.2/', 'http://', 'http://[', '\x01', ''],
];

type Behaviours = Readonly<Record<string, Behaviour>>;

const withEach = <Item>(
  items: readonly Item[],
  row: (item: Item) => readonly [name: string, act: Behaviour],
): Behaviours => Object.fromEntries(items.map(row));

/** Responses whose picture is served, even if they break a rule of HTTP. */
const shown: Behaviours = {
  'a valid response': begin(completeHead, jpeg),
  'no length': picture(''),
  'HTTP/1.0': send('HTTP/1.0 200 OK\r\n\r\n', jpeg),
  chunks: chunked(asChunk(jpeg), '0\r\n\r\n'),
  // Shorter than the bytes that are read for the type.
  'a small picture and no length': picture('', dot),
  'a small picture in chunks': chunked(asChunk(dot), '0\r\n\r\n'),
  'more bytes than declared': begin(completeHead, Buffer.concat([jpeg, Buffer.alloc(9_000)])),
  'the encoding identity': picture('Content-Encoding: identity\r\n'),
  'early hints': begin('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', completeHead, jpeg),
  'an unsolicited 100': begin('HTTP/1.1 100 Continue\r\n\r\n', completeHead, jpeg),
  'an unsolicited 100 with a field, after hints': begin(
    'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\nX-Field: 1\r\n\r\n',
    ...[completeHead, jpeg],
  ),
  cookies: picture(`${'Set-Cookie: a=b; Domain=test; Path=/\r\n'.repeat(50)}${lengthField}`),
  'another media type': picture(`Content-Type: text/html\r\n${lengthField}`),
  'a very long media type': picture(`Content-Type: ${'a/'.repeat(5_000)}\r\n${lengthField}`),
};

/** Invalid or untrustworthy responses. */
const refused: Behaviours = {
  'a negative length': picture('Content-Length: -1\r\n'),
  'a length that is not a number': picture('Content-Length: many\r\n'),
  'a length of 2^64': picture('Content-Length: 18446744073709551616\r\n'),
  'two lengths': picture(`${lengthField}Content-Length: 7\r\n`),
  'length and chunks': picture(`${lengthField}Transfer-Encoding: chunked\r\n`),
  ...withEach(encodings, (encoding) => {
    const body = encoding === 'deflate' ? deflateSync(jpeg) : gzipSync(jpeg);
    return [`the encoding ${encoding}`, picture(`Content-Encoding: ${encoding}\r\n`, body)];
  }),
  'a transfer in gzip': picture('Transfer-Encoding: gzip, chunked\r\n', asChunk(gzipSync(jpeg))),
  'a chunk with an invalid size': chunked('zz\r\n'),
  'a chunk of negative size': chunked('-5\r\nhello\r\n'),
  'a chunk of 2^64': chunked('10000000000000000\r\n', jpeg),
  'a chunk longer than its size': chunked('5\r\n', jpeg, '\r\n0\r\n\r\n'),
  ...withEach(statuses, (code) => [`the status ${code}`, status(code)]),
  'an unsolicited range': respond(
    `206 Part\r\n${lengthField}Content-Range: bytes 0-${jpeg.length - 1}/${jpeg.length}\r\n`,
    jpeg,
  ),
  'a multipart range': respond(
    '206 Part\r\nContent-Type: multipart/byteranges; boundary=a\r\nContent-Length: 5\r\n',
    '--a--',
  ),
  'endless interim responses': endless(
    'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n',
  ),
  'another protocol': respond(
    '101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n',
  ),
  'endless unsolicited 100s': endless('HTTP/1.1 100 Continue\r\n\r\n'),
  'a header of a megabyte': picture(`X-Large: ${'a'.repeat(1_048_576)}\r\n${lengthField}`),
  'an endless head': endless('X-Many: 1\r\n', 'HTTP/1.1 200 OK\r\n'),
  'no head at all': send(jpeg),
  'a line of another protocol': send('SSH-2.0-OpenSSH_9.2\r\n'),
  'a field without a colon': picture('nonsense\r\n'),
  'a NUL in a field': picture('X-Nul: a\0b\r\n'),
  ...withEach(redirects, (place) => [
    `a redirect to ${JSON.stringify(place)}`,
    status(302, `Location: ${place}\r\n`),
  ]),
  ...withEach([301, 303, 307, 308], (code) => [`a ${code} without a place`, status(code)]),
  'two locations': status(302, 'Location: /a\r\nLocation: /b\r\n'),
  'a reset before the head': (socket) => socket.resetAndDestroy(),
  'an end before the head': (socket) => socket.end(),
  'a reset after the head': (socket) => {
    socket.write(completeHead, () => socket.resetAndDestroy());
  },
};

/** Not pictures, regardless of the declared type. */
const notPictures: Behaviours = {
  'a length of nothing': respond('200 OK\r\nContent-Length: 0\r\n'),
  'undeclared gzip': picture('', gzipSync(jpeg)),
  'an endless page': endless('<p>more</p>'.repeat(1_000), 'HTTP/1.1 200 OK\r\n\r\n<!doctype html>'),
  ...withEach(Object.entries(kinds), ([name, body]) => [
    name,
    picture('Content-Type: image/png\r\n', body),
  ]),
};

const missing: Behaviours = {
  'the status 404': status(404),
  'the status 410': status(410),
  'a 404 with an endless body': endless(jpeg, 'HTTP/1.1 404 No\r\n\r\n'),
};

/** Responses that end early, after passthrough has begun. */
const cutOff: Behaviours = {
  'fewer bytes than declared': picture(`Content-Length: ${jpeg.length + 1}\r\n`),
  'far fewer bytes than declared': picture('Content-Length: 1000000\r\n'),
  'chunks without an end': chunked(asChunk(jpeg)),
  'trailers without an end': endless(
    `X-Field: ${'a'.repeat(1_000)}\r\n`,
    ...[chunkedHead, asChunk(jpeg), '0\r\n'],
  ),
};

/** Half a picture, which passthrough does not detect. */
const halves: Behaviours = {
  'a length in the middle of the picture': respond('200 OK\r\nContent-Length: 6000\r\n', jpeg),
  'half of the picture, and no length': picture('', jpeg.subarray(0, jpeg.length / 2)),
};

/** Sends a body piece by piece, each in time, but too slowly in total. */
const slowly: Behaviour = (socket) => {
  const piece = (_: unknown, index: number): Uint8Array =>
    jpeg.subarray((index * jpeg.length) / 40, ((index + 1) * jpeg.length) / 40);
  trickle(socket, [completeHead, ...Array.from(Array(40), piece)], 30);
};

/** Responses that only a deadline ends. */
const hanging: Behaviours = {
  'an endless chunk extension': endless('a'.repeat(65_536), `${chunkedHead}5;`),
  'no response': () => undefined,
  'a head, byte by byte': (socket) =>
    trickle(socket, `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(9_000)}`, 20),
  'a hint, and no response': begin('HTTP/1.1 103 Early Hints\r\n\r\n'),
  'a head, and no body': begin(completeHead),
  'an endless reason phrase': endless('a'.repeat(65_536), 'HTTP/1.1 200 '),
};

/** Behaviours and their outcomes for a transform and for passthrough; some end by a deadline. */
const table: readonly [Behaviours, rendered: Outcome, passedOn: Outcome, hangs?: true][] = [
  [shown, 200, 200],
  [refused, 502, 502],
  [notPictures, 415, 415],
  [missing, 404, 404],
  [cutOff, 502, 'cut'],
  [halves, 422, 200],
  [{ 'a declared gigabyte': picture('Content-Length: 1073741824\r\n') }, 422, 422],
  [{ 'an endless picture': endless(Buffer.alloc(65_536), bareHead, jpeg) }, 422, 'cut'],
  [hanging, 504, 504, true],
  [{ 'a slow body': slowly }, 504, 200, true],
  [{ 'a stalled body': begin(completeHead, jpeg.subarray(0, 6_000)) }, 504, 'cut', true],
];

const MEBIBYTE = 2 ** 20;

/** Deadlines of servers that hang, in milliseconds; for others, the defaults are long enough. */
const SHORT = {
  ...{ connectTimeoutMs: 300, firstByteTimeoutMs: 300, headTimeoutMs: 300, pauseMs: 300 },
  bodyTimeoutMs: 500,
};

const site = await useHostileServer();
const settings = {
  EXTERNAL_PORTS: `80,443,${site.port}`,
  MAX_ORIGINAL_BYTES: String(2 * MEBIBYTE),
  EXTERNAL_MAX_BYTES: String(3 * MEBIBYTE),
};
const lenientApp = await useExternalApp({ settings });
const strictApp = await useExternalApp({ settings, limits: SHORT });

const rows = table.flatMap(([behaviours, rendered, passedOn, hangs]) =>
  Object.entries(behaviours).flatMap(([name, act]) => [
    { name, act, hangs, use: 'rendered', query: 'width=40&format=png', expected: rendered },
    { name, act, hangs, use: 'passthrough', query: '', expected: passedOn },
  ]),
);

test.each(rows)(
  'the response of a hostile site has the expected outcome, $use: $name',
  async ({ act, hangs, ...row }) => {
    const path = `/${site.behaviours.size}`;
    site.behaviours.set(path, act);
    const bytesNow = (): number => process.memoryUsage().arrayBuffers;
    const bytesBefore = bytesNow();
    let peakBytes = 0;
    const sampling = setInterval(() => {
      peakBytes = Math.max(peakBytes, bytesNow() - bytesBefore);
    }, 5);
    const app = hangs ? strictApp : lenientApp;
    const outcome = await outcomeOf(
      app.requestUrl(`http://${SITE}:${site.port}${path}`, row.query),
    );
    clearInterval(sampling);
    expect(outcome).toBe(row.expected);
    // An endless body occupies at most twice the maximum size of an original in memory.
    expect(peakBytes).toBeLessThan(64 * MEBIBYTE);
  },
);

test('leaves no connection, no error and no secret', async () => {
  await expect.poll(() => site.sockets.size).toBe(0);
  expect(lenientApp.log.errors).toEqual([]);
  expect(strictApp.log.errors).toEqual([]);
  expect(site.requests.filter((head) => /^(?:cookie|authorization):/im.test(head))).toEqual([]);
});
