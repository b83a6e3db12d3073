/** A GET with a host, these fields, and bytes after its head. */
export const get = (fields: string, rest = '') =>
  `GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n${fields}\r\n${rest}`;
/** A GET with a chunked body. */
export const chunked = (rest: string) => get('Transfer-Encoding: chunked\r\n', rest);
export const NO_CHUNKS = '0\r\n\r\n';

export const line = (text: string): string => `${text}\r\nHost: a\r\n\r\n`;

/**
 * Messages that are invalid or ambiguous in HTTP/1.1: each gets a 400, regardless of packet boundaries, and its
 * connection closes.
 */
export const malformedMessages: readonly (readonly [fault: string, bytes: string])[] = [
  ['a length and chunks', get('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', NO_CHUNKS)],
  ['chunks and a length', get('Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', NO_CHUNKS)],
  ['two lengths', get('Content-Length: 5\r\nContent-Length: 6\r\n', 'xxxxx')],
  ['the same length twice', get('Content-Length: 5\r\nContent-Length: 5\r\n', 'xxxxx')],
  ['a list of lengths', get('Content-Length: 5, 5\r\n', 'xxxxx')],
  ['a negative length', get('Content-Length: -5\r\n')],
  ['a length with a plus', get('Content-Length: +5\r\n', 'xxxxx')],
  ['a hexadecimal length', get('Content-Length: 0x5\r\n', 'xxxxx')],
  ['a length with letters', get('Content-Length: 5a\r\n', 'xxxxx')],
  ['two numbers for a length', get('Content-Length: 5 5\r\n', 'xxxxx')],
  ['an empty length', get('Content-Length:\r\n')],
  ['a length beyond 2^64', get('Content-Length: 18446744073709551621\r\n', 'xxxxx')],
  ['a length on a folded line', get('Content-Length:\r\n 5\r\n', 'xxxxx')],
  ['a length before a space and a colon', get('Content-Length : 5\r\n', 'xxxxx')],
  ['a length after a bare LF', get('X: y\nContent-Length: 5\r\n', 'xxxxx')],
  ['a length after a bare CR', get('X: y\rContent-Length: 5\r\n', 'xxxxx')],
  ['chunked, identity', get('Transfer-Encoding: chunked, identity\r\n', NO_CHUNKS)],
  ['identity', get('Transfer-Encoding: identity\r\n', NO_CHUNKS)],
  ['xchunked', get('Transfer-Encoding: xchunked\r\n', NO_CHUNKS)],
  ['chunked twice', get('Transfer-Encoding: chunked, chunked\r\n', NO_CHUNKS)],
  ['an unsupported coding', get('Transfer-Encoding: gzip, chunked\r\n', NO_CHUNKS)],
  ['a coding with a parameter', get('Transfer-Encoding: chunked;a=b\r\n', NO_CHUNKS)],
  ['a coding with a control character', get('Transfer-Encoding: \x0bchunked\r\n', NO_CHUNKS)],
  ['no coding', get('Transfer-Encoding:\r\n', NO_CHUNKS)],
  ['two codings', get('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', NO_CHUNKS)],
  ['a coding on a folded line', get('Transfer-Encoding:\r\n chunked\r\n', NO_CHUNKS)],
  ['a coding before a tab and a colon', get('Transfer-Encoding\t: chunked\r\n', NO_CHUNKS)],
  [
    'chunks in HTTP/1.0',
    `GET /avatars/0.png HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n${NO_CHUNKS}`,
  ],
  ['a chunk of -1', chunked(`-1\r\nx\r\n${NO_CHUNKS}`)],
  ['a chunk of +1', chunked(`+1\r\nx\r\n${NO_CHUNKS}`)],
  ['a chunk of 0x1', chunked(`0x1\r\nx\r\n${NO_CHUNKS}`)],
  ['a chunk beyond 2^64', chunked(`10000000000000001\r\nx\r\n${NO_CHUNKS}`)],
  ['a chunk whose length ends with LF', chunked(`1\nx\r\n${NO_CHUNKS}`)],
  ['an extension of a chunk with LF', chunked(`1;a\nx\r\n${NO_CHUNKS}`)],
  ['an extension of a chunk with a quoted line end', chunked(`1;a="\r\n"\r\nx\r\n${NO_CHUNKS}`)],
  ['a length among the trailers', chunked('0\r\nContent-Length: 5\r\n\r\n')],
  ['chunks that end with LF', chunked('0\r\n\n')],
  ['two hosts', get('Host: b\r\n')],
  ['two equal hosts', get('host: a\r\n')],
  ['a list of hosts', 'GET /avatars/0.png HTTP/1.1\r\nHost: a, b\r\n\r\n'],
  ['a host with a space', 'GET /avatars/0.png HTTP/1.1\r\nHost: a b\r\n\r\n'],
  ['a host with a path', 'GET /avatars/0.png HTTP/1.1\r\nHost: a/b@c\r\n\r\n'],
  ['no host', 'GET /avatars/0.png HTTP/1.1\r\n\r\n'],
  ['a folded line', get('X: a\r\n b\r\n')],
  ['a folded first line', 'GET /avatars/0.png HTTP/1.1\r\n Host: a\r\n\r\n'],
  ['lines that end with LF', 'GET /avatars/0.png HTTP/1.1\nHost: a\n\n'],
  ['a head that ends with LF', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\n'],
  ['a space before a colon', get('X : y\r\n')],
  ['NUL in a value', get('X: a\0b\r\n')],
  ['NUL in a name', get('X\0: b\r\n')],
  ['no name', get(': b\r\n')],
  ['a space before the method', ` ${get('')}`],
  ['a tab in the request line', 'GET\t/avatars/0.png\tHTTP/1.1\r\nHost: a\r\n\r\n'],
  ['HTTP/1.2', 'GET /avatars/0.png HTTP/1.2\r\nHost: a\r\n\r\n'],
  ['HTTP/2.0 in words', 'GET /avatars/0.png HTTP/2.0\r\nHost: a\r\n\r\n'],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['authority form', 'GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a host with dot segments', 'GET /avatars/0.png HTTP/1.1\r\nHost: cdn.example/../x\r\n\r\n'],
  ['a host with a tag', 'GET /avatars/0.png HTTP/1.1\r\nHost: <script>\r\n\r\n'],
  ['a host beyond ASCII', 'GET /avatars/0.png HTTP/1.1\r\nHost: \u00ff\r\n\r\n'],
  ['a name beyond ASCII', get('X\u00e9: a\r\n')],
  ['a field without a colon', get('nonsense\r\n')],
  ['noise', '\0\u0001\u0002garbage\r\n\r\n'],
  ['TLS', '\u0016\u0003\u0001\u0002\0\u0001\0\u0001\u00fc\u0003\u0003'.padEnd(600, '\0')],
  ['a space in the target', line('GET /attachments/1/2/a b HTTP/1.1')],
  ['NUL in the target', line('GET /attachments/1/2/\0 HTTP/1.1')],
  // Invalid in URIs, although curl sends it; Node's parser is strict (RFC 9112 §3.2).
  ['raw UTF-8 in the target', line('GET /attachments/1/2/\u00c3\u00a9 HTTP/1.1')],
  ['a method that is not a token', line('FROB/NICATE /avatars/0.png HTTP/1.1')],
  // An unknown method gets a 405 only in a valid request line.
  ...[
    'BREW /avatars/0.png',
    'BREW /avatars/0.png HTTP/1.1\nHost: a\n\n',
    'BREW /avatars/0.png HTTP/2.0\r\n\r\n',
    'BREW  /avatars/0.png HTTP/1.1\r\n\r\n',
    'BREW /avatars/ 0.png HTTP/1.1\r\n\r\n',
    'BREW avatars/0.png HTTP/1.1\r\n\r\n',
    'BR(W /avatars/0.png HTTP/1.1\r\n\r\n',
    ' BREW /avatars/0.png HTTP/1.1\r\n\r\n',
  ].map((bytes) => [JSON.stringify(bytes), bytes] as const),
];
