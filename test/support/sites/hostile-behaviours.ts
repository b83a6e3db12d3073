import { deflateSync, gzipSync } from 'node:zlib';
import { samples } from '../test-app.ts';
import { type Behaviour, trickle, writeForEver } from './hostile-server.ts';

/** What a client of ours gets: a status; or `cut`, a response that breaks off. */
export type Outcome = number | 'cut';

/** What a server does, and what comes of it. */
export interface HostileRow {
  readonly name: string;
  readonly act: Behaviour;
  /** Where a transform is asked for. */
  readonly rendered: Outcome;
  /** Where it is passed on. */
  readonly passedOn: Outcome;
  /** It ends by a deadline alone. */
  readonly hangs?: true;
}

const { jpeg } = samples;
const whole = `Content-Length: ${jpeg.length}\r\n`;

/** A response, the head as text. */
function respond(head: string, body: Uint8Array | string = '', { ends = false } = {}): Behaviour {
  return (socket) => {
    socket.write(`HTTP/1.1 ${head}\r\n`);
    socket.write(body);
    if (ends) socket.end();
  };
}

/** A response with the picture in it, and these fields. */
function picture(fields: string, body: Uint8Array | string = jpeg): Behaviour {
  return respond(`200 OK\r\n${fields}`, body, { ends: true });
}

function status(code: number, fields = ''): Behaviour {
  return respond(`${code} Whatever\r\nContent-Length: 0\r\n${fields}`);
}

function redirect(location: string): Behaviour {
  return status(302, `Location: ${location}\r\n`);
}

function chunked(...chunks: readonly (string | Uint8Array)[]): Behaviour {
  return (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    for (const chunk of chunks) socket.write(chunk);
    socket.end();
  };
}

const asChunk = (bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);

const bad = { rendered: 502, passedOn: 502 } as const;
const good = { rendered: 200, passedOn: 200 } as const;
const unfit = { rendered: 415, passedOn: 415 } as const;

const statuses = [
  ...[201, 202, 203, 204, 205, 207, 226, 300, 304, 305, 306],
  ...[
    400, 401, 402, 403, 405, 406, 407, 408, 409, 412, 413, 414, 416, 418, 421, 425, 426, 429, 451,
  ],
  ...[500, 501, 502, 503, 504, 505, 507, 511, 599, 999],
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

/** What servers do to those who ask them, each with what must come of it. */
export const hostileRows: readonly HostileRow[] = [
  // Lengths.
  { name: 'as it should be', act: respond(`200 OK\r\n${whole}`, jpeg), ...good },
  { name: 'no length, and the end of the connection', act: picture(''), ...good },
  {
    name: 'HTTP/1.0',
    act: (s) => s.end(Buffer.concat([Buffer.from('HTTP/1.0 200 OK\r\n\r\n'), jpeg])),
    ...good,
  },
  { name: 'chunks', act: chunked(asChunk(jpeg), '0\r\n\r\n'), ...good },
  {
    name: 'more bytes than announced',
    act: respond(`200 OK\r\n${whole}`, Buffer.concat([jpeg, Buffer.alloc(9_000, 1)])),
    ...good,
  },
  {
    name: 'a length in the middle of the picture',
    act: respond(`200 OK\r\nContent-Length: 6000\r\n`, jpeg),
    rendered: 422,
    passedOn: 200,
  },
  {
    name: 'fewer bytes than announced',
    act: picture(`Content-Length: ${jpeg.length + 1}\r\n`),
    rendered: 502,
    passedOn: 'cut',
  },
  {
    name: 'far fewer bytes than announced',
    act: picture('Content-Length: 1000000\r\n'),
    rendered: 502,
    passedOn: 'cut',
  },
  {
    name: 'the half of it, and no length',
    act: picture('', jpeg.subarray(0, jpeg.length / 2)),
    rendered: 422,
    passedOn: 200,
  },
  { name: 'a length of nothing', act: respond('200 OK\r\nContent-Length: 0\r\n'), ...unfit },
  { name: 'a negative length', act: picture('Content-Length: -1\r\n'), ...bad },
  { name: 'a length that is none', act: picture('Content-Length: many\r\n'), ...bad },
  { name: 'a length of 2^64', act: picture('Content-Length: 18446744073709551616\r\n'), ...bad },
  { name: 'two lengths', act: picture(`${whole}Content-Length: 7\r\n`), ...bad },
  { name: 'length and chunks', act: picture(`${whole}Transfer-Encoding: chunked\r\n`), ...bad },
  {
    name: 'a gigabyte announced',
    act: picture('Content-Length: 1073741824\r\n'),
    rendered: 422,
    passedOn: 422,
  },
  // Encodings.
  ...[
    'gzip',
    'GZIP',
    'x-gzip',
    'br',
    'deflate',
    'zstd',
    'identity, gzip',
    'gzip\r\nContent-Encoding: gzip',
    'nonsense',
  ].map(
    (encoding): HostileRow => ({
      name: `the encoding ${JSON.stringify(encoding)}`,
      act: picture(
        `Content-Encoding: ${encoding}\r\n`,
        encoding === 'deflate' ? deflateSync(jpeg) : gzipSync(jpeg),
      ),
      ...bad,
    }),
  ),
  { name: 'the encoding identity', act: picture('Content-Encoding: identity\r\n'), ...good },
  { name: 'gzip that is not told of', act: picture('', gzipSync(jpeg)), ...unfit },
  {
    name: 'a transfer in gzip',
    act: respond('200 OK\r\nTransfer-Encoding: gzip, chunked\r\n', asChunk(gzipSync(jpeg)), {
      ends: true,
    }),
    ...bad,
  },
  // Chunks.
  { name: 'a chunk of no size', act: chunked('zz\r\n'), ...bad },
  { name: 'a chunk of negative size', act: chunked('-5\r\nhello\r\n'), ...bad },
  { name: 'a chunk of 2^64', act: chunked('10000000000000000\r\n', jpeg), ...bad },
  {
    name: 'a chunk that is longer than it says',
    act: chunked('5\r\n', jpeg, '\r\n0\r\n\r\n'),
    ...bad,
  },
  { name: 'chunks without an end', act: chunked(asChunk(jpeg)), rendered: 502, passedOn: 'cut' },
  {
    name: 'an extension of a chunk that does not end',
    act: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;');
      writeForEver(socket, 'a'.repeat(65_536));
    },
    rendered: 504,
    passedOn: 504,
    hangs: true,
  },
  {
    name: 'trailers without an end',
    act: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      socket.write(asChunk(jpeg));
      socket.write('0\r\n');
      writeForEver(socket, `X-Field: ${'a'.repeat(1_000)}\r\n`);
    },
    rendered: 502,
    passedOn: 'cut',
  },
  // Statuses.
  ...statuses.map(
    (code): HostileRow => ({ name: `the status ${code}`, act: status(code), ...bad }),
  ),
  { name: 'the status 404', act: status(404), rendered: 404, passedOn: 404 },
  { name: 'the status 410', act: status(410), rendered: 404, passedOn: 404 },
  {
    name: 'a 404 with a body that does not end',
    act: (s) => {
      s.write('HTTP/1.1 404 No\r\n\r\n');
      writeForEver(s, jpeg);
    },
    rendered: 404,
    passedOn: 404,
  },
  {
    name: 'a part that was not asked for',
    act: respond(
      `206 Part\r\n${whole}Content-Range: bytes 0-${jpeg.length - 1}/${jpeg.length}\r\n`,
      jpeg,
    ),
    ...bad,
  },
  {
    name: 'parts in pieces',
    act: respond(
      '206 Part\r\nContent-Type: multipart/byteranges; boundary=a\r\nContent-Length: 5\r\n',
      '--a--',
    ),
    ...bad,
  },
  // What comes before the response that counts.
  {
    name: 'hints before it',
    act: respond(`103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n${whole}`, jpeg),
    ...good,
  },
  {
    name: 'interim responses that do not end',
    act: (socket) =>
      writeForEver(socket, 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n'),
    ...bad,
  },
  {
    name: 'another protocol',
    act: respond('101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'),
    ...bad,
  },
  {
    name: 'an unasked 100',
    act: respond(`100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n${whole}`, jpeg),
    ...bad,
  },
  // Heads.
  {
    name: 'a header of a megabyte',
    act: respond(`200 OK\r\nX-Large: ${'a'.repeat(1_048_576)}\r\n${whole}`, jpeg),
    ...bad,
  },
  {
    name: 'headers by the ten thousand',
    act: respond(`200 OK\r\n${'X-Many: 1\r\n'.repeat(10_000)}${whole}`, jpeg),
    ...bad,
  },
  {
    name: 'a head that does not end',
    act: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      writeForEver(socket, 'X-Many: 1\r\n');
    },
    ...bad,
  },
  { name: 'no head at all', act: (socket) => socket.end(jpeg), ...bad },
  {
    name: 'a line of another protocol',
    act: (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'),
    ...bad,
  },
  {
    name: 'the line of a binary protocol',
    act: (socket) => socket.end('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    ...bad,
  },
  { name: 'a field without a colon', act: picture('nonsense\r\n'), ...bad },
  { name: 'a NUL in a field', act: picture('X-Nul: a\0b\r\n'), ...bad },
  {
    name: 'cookies',
    act: respond(
      `200 OK\r\n${'Set-Cookie: a=b; Domain=test; Path=/\r\n'.repeat(50)}${whole}`,
      jpeg,
    ),
    ...good,
  },
  {
    name: 'other names for the type',
    act: respond(`200 OK\r\nContent-Type: text/html\r\n${whole}`, jpeg),
    ...good,
  },
  {
    name: 'a type that does not end',
    act: respond(`200 OK\r\nContent-Type: ${'a/'.repeat(5_000)}\r\n${whole}`, jpeg),
    ...good,
  },
  // Kinds that are not shown, whatever they are said to be.
  ...Object.entries(kinds).map(
    ([name, body]): HostileRow => ({
      name,
      act: picture('Content-Type: image/png\r\n', body),
      ...unfit,
    }),
  ),
  // Redirects.
  ...[
    'file:///etc/passwd',
    'data:image/gif;base64,R0lGODlhAQABAAAAACw=',
    'ftp://site.test/',
    'javascript:alert(1)',
    'http://user:secret@site.test/',
    'http://site.test:22/',
    'http://localhost/',
    '//169.254.169.254/',
    'http://10.0.0.1/',
    'https://[::1]/',
    '///127.0.0.2/',
    'http://',
    'http://[',
    '\x01',
    '',
  ].map(
    (location): HostileRow => ({
      name: `a redirect to ${JSON.stringify(location)}`,
      act: redirect(location),
      ...bad,
    }),
  ),
  ...[301, 303, 307, 308].map(
    (code): HostileRow => ({ name: `a ${code} without a place`, act: status(code), ...bad }),
  ),
  { name: 'two places', act: status(302, 'Location: /a\r\nLocation: /b\r\n'), ...bad },
  // Bodies.
  {
    name: 'a picture that does not end',
    act: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.write(jpeg);
      writeForEver(socket, Buffer.alloc(65_536));
    },
    rendered: 422,
    passedOn: 'cut',
  },
  {
    name: 'a page that does not end',
    act: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n<!doctype html>');
      writeForEver(socket, '<p>more</p>'.repeat(1_000));
    },
    ...unfit,
  },
  { name: 'a reset before the head', act: (socket) => socket.resetAndDestroy(), ...bad },
  { name: 'an end before the head', act: (socket) => socket.end(), ...bad },
  {
    name: 'a reset behind the head',
    act: (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${whole}\r\n`, () => socket.resetAndDestroy());
    },
    ...bad,
  },
  // What ends by a deadline alone.
  { name: 'no response', act: () => undefined, rendered: 504, passedOn: 504, hangs: true },
  {
    name: 'a head, byte by byte',
    act: (socket) => trickle(socket, Buffer.from(`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(9_000)}`), 20),
    rendered: 504,
    passedOn: 504,
    hangs: true,
  },
  {
    name: 'a hint, and no response',
    act: (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'),
    rendered: 504,
    passedOn: 504,
    hangs: true,
  },
  {
    name: 'a head, and no body',
    act: (socket) => socket.write(`HTTP/1.1 200 OK\r\n${whole}\r\n`),
    rendered: 504,
    passedOn: 504,
    hangs: true,
  },
  {
    name: 'a body, byte by byte',
    act: (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${whole}\r\n`);
      trickle(socket, jpeg, 20);
    },
    rendered: 504,
    passedOn: 504,
    hangs: true,
  },
  {
    name: 'a body that stands still in its middle',
    act: (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${whole}\r\n`);
      socket.write(jpeg.subarray(0, 6_000));
    },
    rendered: 504,
    passedOn: 'cut',
    hangs: true,
  },
  {
    name: 'a reason that does not end',
    act: (socket) => {
      socket.write('HTTP/1.1 200 ');
      writeForEver(socket, 'a'.repeat(65_536));
    },
    rendered: 504,
    passedOn: 504,
    hangs: true,
  },
];
