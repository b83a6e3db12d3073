import { readFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { listenUntilEnd } from '../../support/at-end.ts';
import { tlsFiles } from '../../support/http/tls-files.ts';
import { openStream, signal } from '../../support/open-stream.ts';
import { type Fault, FaultProxy } from '../../support/s3/fault-proxy.ts';
import { useLocalS3 } from '../../support/s3/local-s3.ts';
import { openBucketOrigin } from '../../support/s3/s3-bucket.ts';
import { samples } from '../../support/test-app.ts';

// http/media/failures and test/cache test how the service responds to a failing origin.

const CONNECT_MS = 200;
const STALL_MS = 600;
/** Additional time for a busy machine. */
const SLACK_MS = 2_000;
const KEY = 'avatars/1/ab12';
const LARGE = 'attachments/1/2/large';
const large = Buffer.alloc(20_000_000, 'large object, ');

const s3 = await useLocalS3();
await s3.put(KEY, samples.png);
await s3.put(LARGE, large);
const [key, cert] = [readFileSync(tlsFiles.key), readFileSync(tlsFiles.cert)];
const selfSigned = `https://127.0.0.1:${await listenUntilEnd(createHttpsServer({ key, cert }))}`;
let proxy: FaultProxy;
beforeEach(async () => {
  proxy = new FaultProxy(s3.port);
  await proxy.listen();
  vi.spyOn(Math, 'random').mockReturnValue(0); // no wait between two attempts
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await proxy.refuse();
});

/** With one connection: if a read left it busy, every later read would fail. */
const createOrigin = (options: Parameters<typeof openBucketOrigin>[1] = {}) =>
  openBucketOrigin(s3, {
    endpoint: proxy.endpoint,
    maxConnections: 1,
    connectTimeoutMs: CONNECT_MS,
    stallTimeoutMs: STALL_MS,
    ...options,
  });

async function read(origin = createOrigin(), until = signal) {
  return buffer((await openStream(origin, KEY, { signal: until })).body);
}

function refusal(status: string, code: string, message = 'No.', head = ''): Fault {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
  return response(status, body, `${head}Content-Type: application/xml\r\n`);
}

function response(status: string, body: string, head = ''): Fault {
  const bytes = `HTTP/1.1 ${status}\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`;
  return { kind: 'response', bytes };
}

const unframed =
  'HTTP/1.1 200 OK\r\nETag: "a"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n';
const lastByte = samples.png.length - 1;

/** Failures, errors of a read, and the number of requests (by default 1). */
const failures: Readonly<Record<string, readonly [Fault, RegExp, requests?: number]>> = {
  'a body that is cut': [{ kind: 'cut', afterBytes: 1_000 }, /aborted/],
  'a body that is cut before its last byte': [{ kind: 'cut', afterBytes: lastByte }, /aborted/],
  'a reset in the body': [{ kind: 'reset', afterBytes: 1_000 }, /aborted|ECONNRESET/],
  'a body that stops': [{ kind: 'stall', afterBytes: 1_000 }, /ORIGIN_TIMEOUT.* for 600 ms/],
  garbage: [{ kind: 'response', bytes: '\0\x01garbage\r\n\r\n' }, /ORIGIN_ERROR.*HPE_/],
  '500': [
    refusal('500 Internal Server Error', 'InternalError'),
    /ORIGIN_ERROR.*InternalError \(HTTP 500, attempts: 3\): No\./,
    3,
  ],
  '502 of a proxy, in HTML': [
    response('502 Bad Gateway', '<html>Bad gateway<br>', 'Content-Type: text/html\r\n'),
    /ORIGIN_ERROR.*HTTP 502/,
    3,
  ],
  '403 AccessDenied': [
    refusal('403 Forbidden', 'AccessDenied', 'Denied.', 'x-amz-request-id: r1\r\n'),
    /ORIGIN_ERROR.*AccessDenied \(HTTP 403, request r1, attempts: 1\): Denied\./,
  ],
  'a long error': [
    refusal('403 Forbidden', 'AccessDenied', 'x'.repeat(60_000)),
    /ORIGIN_ERROR.*AccessDenied \(HTTP 403, attempts: 1\): x{300}$/,
  ],
  '404 NoSuchKey': [refusal('404 Not Found', 'NoSuchKey'), /UNKNOWN_MEDIA/],
  '404 NoSuchBucket': [refusal('404 Not Found', 'NoSuchBucket'), /ORIGIN_ERROR.*NoSuchBucket/],
  '404 of a server other than S3': [
    response('404 Not Found', 'page not found\n'),
    /ORIGIN_ERROR.*HTTP 404/,
  ],
  '404 without a body': [response('404 Not Found', ''), /ORIGIN_ERROR.*HTTP 404/],
  'a redirect to another region': [
    refusal('301 Moved Permanently', 'PermanentRedirect', 'No.', 'x-amz-bucket-region: eu\r\n'),
    /ORIGIN_ERROR.*PermanentRedirect \(HTTP 301/,
  ],
  'an object without an ETag': [response('200 OK', 'bytes'), /ORIGIN_ERROR.*no ETag/],
  'an object without a length': [
    { kind: 'response', bytes: unframed },
    /ORIGIN_ERROR.*no Content-Length/,
  ],
};

/** Returns the code, the message and the cause of a failed read. */
async function failureOf(origin = createOrigin(), until = signal): Promise<string> {
  const startMs = performance.now();
  const error = await read(origin, until).then(
    () => undefined,
    (reason: Error & { code?: string }) => reason,
  );
  expect(performance.now() - startMs).toBeLessThan(STALL_MS + SLACK_MS);
  const { code, message, cause } = error ?? {};
  return [code, message, cause instanceof Error && cause.message].join(' ');
}

test.each(Object.entries(failures))(
  'a read of S3 with %s fails, and the next one succeeds',
  async (_, [fault, message, requests = 1]) => {
    const origin = createOrigin();
    proxy.setFault(fault);
    expect(await failureOf(origin)).toMatch(message);
    expect(proxy.requests).toHaveLength(requests);
    proxy.setFault();
    expect((await read(origin)).equals(samples.png)).toBe(true);
    expect(proxy.connections).toBeLessThanOrEqual(1);
  },
);

test.each<[what: string, wrong: object, message: RegExp]>([
  ['no credentials', { AWS_ACCESS_KEY_ID: '' }, /^ORIGIN_ERROR.*CredentialsProviderError/],
  ['an unknown name', { endpoint: 'http://s3.invalid' }, /^ORIGIN_ERROR.*ENOTFOUND/],
  [
    'a self-signed certificate',
    { endpoint: selfSigned },
    /^ORIGIN_ERROR.*SELF_SIGNED.*attempts: 1/,
  ],
])('a read of S3 with %s fails', async (_, wrong, message) => {
  const settings = { AWS_EC2_METADATA_DISABLED: 'true', ...wrong };
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value);
  expect(await failureOf(createOrigin(wrong))).toMatch(message);
});

test('a read of S3 is retried after one 500, and after a reused connection was closed or refused', async () => {
  const origin = createOrigin();
  proxy.setFault(refusal('500 Internal Server Error', 'InternalError'), 1);
  expect((await read(origin)).equals(samples.png)).toBe(true);
  expect(proxy.requests).toHaveLength(2);
  await proxy.refuse();
  expect(await failureOf(origin)).toMatch(/ORIGIN_ERROR.*ECONNREFUSED, attempts: 3/);
  await proxy.listen();
  expect((await read(origin)).equals(samples.png)).toBe(true);
});

test('a read of S3 is sent again on a new connection when a reused one stays silent', async () => {
  const origin = createOrigin({ maxConnections: 4 });
  const readAll = (count: number) => Promise.all(Array.from({ length: count }, () => read(origin)));
  await readAll(4);
  expect(proxy.accepted).toBe(4);
  proxy.silence();
  // The first read also closes the other idle connections, which may be dead, too.
  expect((await read(origin)).equals(samples.png)).toBe(true);
  expect([proxy.ignoredChunks, proxy.accepted, proxy.connections]).toEqual([1, 5, 1]);
  await readAll(4);
  proxy.silence();
  for (const bytes of await readAll(4)) expect(bytes.equals(samples.png)).toBe(true);
  expect([proxy.ignoredChunks, proxy.accepted]).toEqual([5, 12]);
});

test('a read of S3 waits longer than the connect deadline for a response on a new connection', async () => {
  const origin = createOrigin();
  await read(origin);
  proxy.delayMs = 2 * CONNECT_MS;
  expect((await read(origin)).equals(samples.png)).toBe(true);
  expect(proxy.requests).toHaveLength(3);
});

test.each<[string, number, Fault]>([
  ['waits for its next attempt', 0.99, refusal('503 Slow Down', 'SlowDown')],
  ['has had no response', 0, { kind: 'response', bytes: '' }],
])('a read of S3 that %s ends when its signal is aborted', async (_, random, fault) => {
  vi.spyOn(Math, 'random').mockReturnValue(random);
  proxy.setFault(fault);
  const call = new AbortController();
  const failure = failureOf(createOrigin(), call.signal);
  await expect.poll(() => proxy.requests.length).toBe(1);
  call.abort(new Error('the deadline'));
  expect(await failure).toContain('the deadline');
  expect(proxy.requests).toHaveLength(1);
});

test('a read of S3 ends after the connect deadline if the TLS handshake hangs', async () => {
  // The proxy reads the head of a request to its end.
  const endpoint = proxy.endpoint.replace('http', 'https');
  expect(await failureOf(createOrigin({ endpoint }))).toMatch(
    `No connection within ${CONNECT_MS} ms.`,
  );
  await expect.poll(() => proxy.connections).toBe(0);
});

test('a read of S3 waits for a free connection beyond the connect deadline', async () => {
  const origin = createOrigin();
  const first = await openStream(origin, LARGE);
  const waiting = read(origin);
  await new Promise((resolve) => setTimeout(resolve, 2 * CONNECT_MS));
  expect(proxy.requests).toHaveLength(1);
  first.body.resume();
  expect((await waiting).equals(samples.png)).toBe(true);
  expect(proxy.connections).toBe(1);
});

test('a slow reader gets a complete object from S3, without read-ahead or a time limit', async () => {
  const { body } = await openStream(createOrigin(), LARGE);
  let received = 0;
  for await (const chunk of body) {
    if (received === 0) {
      await new Promise((resolve) => setTimeout(resolve, 2.5 * STALL_MS));
      // Unread bytes stay in the system's buffers, or at the server.
      expect(proxy.sentBytes).toBeLessThan(large.length / 2);
    }
    received += chunk.length;
  }
  expect(received).toBe(large.length);
});

test('each read of S3 sends one GET, on one connection, and leaves no listener on it', async () => {
  const warn = vi.spyOn(process, 'emitWarning');
  // A busy machine may take longer than the short deadlines of the other tests, after which a read is repeated.
  const origin = createOrigin({ connectTimeoutMs: 10_000, stallTimeoutMs: 10_000 });
  for (let count = 0; count < 20; count += 1) await read(origin);
  expect(proxy.requests.map((head) => head.split(' ')[0])).toEqual(Array(20).fill('GET'));
  expect(proxy.accepted).toBe(1);
  expect(warn.mock.calls.join()).not.toMatch(/listeners/);
});

test('a read of S3 requests no checksum, and signs with a session token if it has one', async () => {
  vi.stubEnv('AWS_SESSION_TOKEN', 'token-of-a-session');
  proxy.setFault(refusal('403 Forbidden', 'InvalidToken', 'S3RVER token-of-a-session is bad'));
  expect(await failureOf()).toContain('InvalidToken (HTTP 403, attempts: 1): *** *** is bad');
  expect(proxy.requests).toHaveLength(1);
  expect(proxy.requests[0]).toContain('x-amz-security-token: token-of-a-session\r\n');
  expect(proxy.requests[0]).not.toMatch(/checksum/i);
});
