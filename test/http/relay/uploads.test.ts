import { once } from 'node:events';
import { expect, test } from 'vitest';
import { errorRegistry } from '../../../src/contract/errors.ts';
import { cdnSettings } from '../../support/cdn/cdn-app.ts';
import { startCdnApi } from '../../support/cdn/cdn-server.ts';
import { parseResponse, sendBytes } from '../../support/http/raw-http.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { findDeviations, isValidText, operationsOf } from '../../support/openapi/openapi-reader.ts';
import { samples } from '../../support/test-app.ts';
import { capabilityOf, uploadTarget, useRelayApp } from '../../support/uploads/relay-app.ts';

// test/surface and docs/upload-vectors.json test capabilities and rejections.

const relay = await useRelayApp({ settings: { RELAY_MAX_BYTES: '1000000' } });
await relay.put('emojis/9', samples.png);

const KEY = 'attachments/1/2/name.bin';
const to = (key: string): string => `/v1/relay/${KEY}?t=${capabilityOf(key)}`;
const hugeLength = { 'Content-Length': '9'.repeat(16) };
const documented = operationsOf('uploads').find(({ method }) => method === 'PUT') ?? expect.fail();

test.each([
  [401, 'UNAUTHORIZED', `/v1/relay/${KEY}`, {}],
  [403, 'ACCESS_DENIED', to('attachments/1/2/other'), {}],
  [400, 'INVALID_FORM_BODY', uploadTarget('backups/database'), {}],
  [400, 'INVALID_FORM_BODY', to(KEY), { 'Content-Range': 'bytes 0-4/9' }],
  [415, 'UNSUPPORTED_MEDIA_TYPE', to(KEY), { 'Content-Encoding': 'gzip' }],
  [413, 'PAYLOAD_TOO_LARGE', uploadTarget(KEY, { maxBytes: 4 }), {}],
  [413, 'PAYLOAD_TOO_LARGE', to(KEY), hugeLength],
  [409, 'MEDIA_EXISTS', uploadTarget('emojis/9'), {}],
])(
  'an upload that is rejected with %i %s gets the error instead of a 100 (Continue)',
  async (status, code, target, headers) => {
    const before = await relay.list();
    const sent = { 'Content-Length': '5', Expect: '100-continue', Authorization: 'Bearer wrong' };
    const response = await relay.app.send('PUT', target, { ...sent, ...headers });
    expect(findDeviations(documented, response)).toEqual([]);
    expect([response.status, JSON.parse(response.body.toString()).code]).toEqual([status, code]);
    expect(await relay.list()).toEqual(before);
  },
);

test.each([
  [
    'a content type that its bytes do not have',
    uploadTarget(KEY, { contentType: 'image/png' }),
    {},
    'The bytes are not the image that the content type declares.',
  ],
  [
    'a content encoding',
    uploadTarget(KEY),
    { 'Content-Encoding': 'gzip' },
    'The upload must not have a Content-Encoding.',
  ],
  [
    'a capability for another key',
    to('attachments/1/2/other'),
    {},
    errorRegistry.ACCESS_DENIED.message,
  ],
])('the error for an upload with %s states the reason', async (_, target, headers, message) => {
  const sent = { 'Content-Length': '5', ...headers };
  const { body } = await relay.app.send('PUT', target, sent, 'hello');
  expect(JSON.parse(body.toString()).message).toBe(message);
});

test('the head of an upload can have 24 KiB, other heads 16 KiB', async () => {
  const put = uploadTarget(KEY);
  for (const [method, target, fillerBytes, status] of [
    ['PUT', put, 23_000, 200],
    ['PUT', put, 24_600, 431],
    ['GET', '/emojis/9.png', 17_000, 431],
    ['OPTIONS', put, 17_000, 431],
  ] as const) {
    const headers = { 'Content-Length': '0', 'X-Filler': 'x'.repeat(fillerBytes) };
    expect((await relay.app.send(method, target, headers)).status).toBe(status);
  }
});

const plainPut = (target: string, ...lines: readonly string[]): string =>
  [`PUT ${target} HTTP/1.1`, 'Host: a', 'Connection: close', ...lines, '', ''].join('\r\n');
const readCode = (bytes: Buffer) => {
  const { status, body } = parseResponse(bytes);
  return [status, body.length === 0 ? '' : JSON.parse(body.toString()).code];
};

test.each([
  ['attachments/3/4/nothing.bin', {}],
  ['attachments/3/4/nothing.png', { contentType: 'image/png' }],
  ['emojis/9', { replaces: true }],
])(
  'an upload of %s with neither length nor transfer coding returns 411 and stores nothing',
  async (key, options) => {
    const before = await relay.list();
    const target = uploadTarget(key, options);
    expect(readCode(await sendBytes(relay.port, plainPut(target)))).toEqual([
      411,
      'LENGTH_REQUIRED',
    ]);
    const old = `PUT ${target} HTTP/1.0\r\n\r\n`;
    expect(readCode(await sendBytes(relay.port, old))).toEqual([411, 'LENGTH_REQUIRED']);
    expect(await relay.list()).toEqual(before);
    const { body } = await relay.app.send('GET', '/emojis/9.png?size=4096&quality=lossless');
    expect(body.length).toBeGreaterThan(0);
  },
);

test('an upload that declares an empty body stores an empty original', async () => {
  const put = plainPut(uploadTarget('attachments/3/4/empty.bin'), 'Content-Length: 0');
  expect(readCode(await sendBytes(relay.port, put))).toEqual([200, '']);
});

test.each([
  [['gzip'], 415],
  [['GZIP'], 415],
  [['br, identity'], 415],
  [['identity', 'aws-chunked'], 415],
  [['identity'], 200],
  [['Identity , identity'], 200],
  [[''], 200],
])('a body with the content encodings %j returns %i', async (encodings, status) => {
  const fields = encodings.map((encoding) => `Content-Encoding: ${encoding}`);
  const target = uploadTarget('attachments/3/5/encoded.bin', { replaces: true });
  const before = await relay.list();
  const put = plainPut(target, ...fields, 'Content-Length: 0');
  const code = status === 415 ? 'UNSUPPORTED_MEDIA_TYPE' : '';
  expect(readCode(await sendBytes(relay.port, put))).toEqual([status, code]);
  if (status === 415) expect(await relay.list()).toEqual(before);
});

const piece = `${(60_000).toString(16)}\r\n${'x'.repeat(60_000)}\r\n`;
const EMPTY = '0\r\n\r\n';

test.each([
  ['more in chunks than the service allows', {}, piece.repeat(20), 413],
  ['more in chunks than allowed', { maxBytes: 9 }, `a\r\n0123456789\r\n${EMPTY}`, 413],
  ['a text declared as a picture', { contentType: 'image/png' }, `5\r\nhello\r\n${EMPTY}`, 415],
  ['an empty picture', { contentType: 'IMAGE/AVIF' }, EMPTY, 415],
  ['invalid chunks', {}, '5\r\nhelloxx', 400],
  ['chunks that become invalid', {}, `${piece}zz\r\n`, 400],
])('an aborted upload stores nothing: %s', async (_, options, body, status) => {
  const before = await relay.list();
  const target = uploadTarget('attachments/9/1/a', options);
  const chunked = { 'Transfer-Encoding': 'chunked' };
  expect((await relay.app.send('PUT', target, chunked, body)).status).toBe(status);
  await expect.poll(relay.list).toEqual(before);
});

test('stores an AVIF whose brand is only among the compatible ones', async () => {
  const target = uploadTarget('attachments/9/1/b', { contentType: 'image/avif' });
  const file = '\0\0\0\x18ftypMA1B\0\0\0\0mif1avif';
  const headers = { 'Content-Length': String(file.length) };
  expect((await relay.app.send('PUT', target, headers, file)).status).toBe(200);
});

test('an upload that is rejected in progress is drained, so that its client can read the response', async () => {
  const { app } = await useRelayApp();
  const head = 'HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 30000000';
  const socket = await app.connect();
  socket.write(`PUT ${uploadTarget('emojis/80')} ${head}\r\n\r\n`);
  await new Promise((resolve) => socket.write(Buffer.alloc(30_000_000), resolve));
  const [response] = await once(socket, 'data');
  expect(parseResponse(response).status).toBe(415);
});

test('a client of HTTP/1.0 gets no 100 (Continue), which it would take for the response', async () => {
  const head = 'HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue';
  const put = `PUT ${uploadTarget('attachments/5/6/old.txt')} ${head}\r\n\r\nhi`;
  expect(String(await sendBytes(relay.port, put))).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
});

// Contract §14: headers of the platform's API, which do not affect uploads.
test('a preflight allows the headers that clients of the platform send', async () => {
  const { status, headers } = await relay.app.send('OPTIONS', uploadTarget(KEY), {
    Origin: 'https://app.example.org',
    'Access-Control-Request-Method': 'PUT',
    'Access-Control-Request-Headers': 'authorization,content-type,x-client-context',
  });
  expect([status, headers['access-control-allow-headers']]).toEqual([
    204,
    'Authorization, Content-Type, Content-Length, X-Fluxer-Features, X-Client-Context, *',
  ]);
  expect(headers['access-control-allow-origin']).toBe('*');
  expect(headers['access-control-expose-headers']?.split(', ')).toContain('ETag');
});

test('the syntax of a capability is documented', () => {
  const schema = documented.parameters.find(({ name }) => name === 't')?.schema ?? expect.fail();
  const t = capabilityOf('emojis/1');
  const texts = [t, '', `${t}=`, `${t}.`, t.replace('.', '')];
  expect(texts.filter((text) => isValidText(schema, text))).toEqual([t]);
});

test('a replacing upload returns 503 but is stored if its purge cannot reach the CDN', async () => {
  const objects = new MemoryObjects();
  const settings = cdnSettings('fastly', await startCdnApi('fastly'));
  const { app, list } = await useRelayApp({ objects, settings });
  const target = uploadTarget('emojis/9', { replaces: true });
  const upload = async () => {
    const { status, headers } = await app.send('PUT', target, { 'Content-Length': '1' }, 'x');
    return [status, headers['retry-after']];
  };
  objects.failure = new Error('the bucket of the list is gone');
  expect(await upload()).toEqual([503, '5']);
  expect(await list()).toEqual(['emojis/9']);
  const message = 'purging a replaced original at the CDN failed; the CDN may serve the old one';
  const details = { key: 'emojis/9', reason: objects.failure.message };
  expect(app.log.entries).toContainEqual({ level: 'error', details, message });
  objects.failure = undefined;
  expect(await upload()).toEqual([200, undefined]);
});
