import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { LookupFunction } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { stdSerializers } from 'pino';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { connectTo } from '../../support/http/raw-http.ts';
import { tlsFiles } from '../../support/http/tls-files.ts';
import { openStream } from '../../support/open-stream.ts';
import { listenLocally } from '../../support/processes/local-server.ts';
import { type Fault, FaultProxy } from '../../support/s3/fault-proxy.ts';
import { LOCAL_CREDENTIALS, type LocalS3, startLocalS3 } from '../../support/s3/local-s3.ts';
import { openBucketOrigin, type S3OriginOptions } from '../../support/s3/s3-bucket.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const CONNECT_MS = 200;
const FIRST_BYTE_MS = 400;
const WHOLE_BODY_MS = 600;
/** What a busy machine may add to a deadline. */
const SLACK_MS = 2_000;

const settings = {
  ORIGIN_FIRST_BYTE_TIMEOUT_MS: String(FIRST_BYTE_MS),
  ORIGIN_TIMEOUT_MS: String(WHOLE_BODY_MS),
};

/** An error as S3 writes it. */
function refusal(status: string, code: string, message = 'No.', head = ''): Fault {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
  return response(status, body, `${head}Content-Type: application/xml\r\n`);
}

function response(status: string, body: string, head = ''): Fault {
  const bytes = `HTTP/1.1 ${status}\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`;
  return { kind: 'answer', bytes };
}

/** What goes wrong, and the deadline that passes then, in milliseconds. */
const delays: readonly (readonly [string, Fault, number])[] = [
  ['no response', { kind: 'hang' }, FIRST_BYTE_MS],
  ['a body that stops', { kind: 'stall', afterBytes: 1_000 }, WHOLE_BODY_MS],
  ['a body that stops before its first byte', { kind: 'stall', afterBytes: 0 }, WHOLE_BODY_MS],
  ['a body that trickles', { kind: 'trickle', bytes: 150 }, FIRST_BYTE_MS + WHOLE_BODY_MS],
];

const unframed =
  'HTTP/1.1 200 OK\r\nETag: "a"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n';
const lastByte = samples.png.length - 1;

/** What goes wrong, and what the log says of it; the server sees one request. */
const failures: Readonly<Record<string, readonly [Fault, RegExp, requests?: number]>> = {
  'a body that is cut': [{ kind: 'cut', afterBytes: 1_000 }, /aborted/],
  'a body that is cut before its last byte': [{ kind: 'cut', afterBytes: lastByte }, /aborted/],
  'a reset in the body': [{ kind: 'reset', afterBytes: 1_000 }, /aborted|ECONNRESET/],
  garbage: [{ kind: 'answer', bytes: '\0\x01garbage\r\n\r\n' }, /HPE_/],
  '500': [
    refusal('500 Internal Server Error', 'InternalError'),
    /InternalError \(HTTP 500, attempts: 3\): No\./,
    3,
  ],
  '503 SlowDown': [
    refusal('503 Slow Down', 'SlowDown', 'Please reduce your request rate.'),
    /SlowDown \(HTTP 503, attempts: 3\): Please reduce your request rate\./,
    3,
  ],
  '502 of a proxy, in HTML': [
    response('502 Bad Gateway', '<html>Bad gateway<br>', 'Content-Type: text/html\r\n'),
    /HTTP 502/,
    3,
  ],
  '403 AccessDenied': [
    refusal('403 Forbidden', 'AccessDenied', 'Denied.', 'x-amz-request-id: r1\r\n'),
    /AccessDenied \(HTTP 403, request r1, attempts: 1\): Denied\./,
  ],
  '403 that quotes the credentials': [
    refusal('403 Forbidden', 'InvalidAccessKeyId', 'No such key: S3RVER'),
    /InvalidAccessKeyId \(HTTP 403, attempts: 1\): No such key: \*\*\*/,
  ],
  '404 NoSuchBucket': [refusal('404 Not Found', 'NoSuchBucket'), /NoSuchBucket \(HTTP 404/],
  '404 of something that is no S3': [response('404 Not Found', 'page not found\n'), /HTTP 404/],
  '404 without a body': [response('404 Not Found', ''), /HTTP 404/],
  'a redirect to another region': [
    refusal('301 Moved Permanently', 'PermanentRedirect', 'No.', 'x-amz-bucket-region: eu\r\n'),
    /PermanentRedirect \(HTTP 301/,
  ],
  'a signature for another region': [
    refusal('400 Bad Request', 'AuthorizationHeaderMalformed', 'Expecting eu-central-1.'),
    /AuthorizationHeaderMalformed \(HTTP 400, attempts: 1\): Expecting eu-central-1\./,
  ],
  'an object without an ETag': [response('200 OK', 'bytes'), /no ETag/],
  'an object without a length': [{ kind: 'answer', bytes: unframed }, /no Content-Length/],
};

/** What the operator reads of an error, causes included. */
const textOf = (entry: unknown): string =>
  JSON.stringify(entry, (_key, value) =>
    value instanceof Error ? stdSerializers.err(value) : value,
  );

let s3: LocalS3;
let proxy: FaultProxy;
let app: TestApp;
/** Of a fresh user, so that nothing is in the cache. */
let user = 0;
const warnings: Error[] = [];
const keepWarning = (warning: Error): void => void warnings.push(warning);

beforeAll(async () => {
  s3 = await startLocalS3();
  process.on('warning', keepWarning);
});
afterAll(async () => {
  process.off('warning', keepWarning);
  await s3.close();
});
beforeEach(async () => {
  proxy = new FaultProxy(s3.port);
  await proxy.listen();
  app = await useTestApp({ settings, origin: createOrigin() });
  user += 1;
  await s3.put(`avatars/${user}/ab12`, samples.png);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await proxy.refuse();
});

/** With a pool of one connection: one that is left behind busy makes every later read fail. */
const createOrigin = (options: Partial<S3OriginOptions> = {}) =>
  openBucketOrigin(s3, {
    endpoint: proxy.endpoint,
    maxConnections: 1,
    connectTimeoutMs: CONNECT_MS,
    stallTimeoutMs: WHOLE_BODY_MS,
    ...options,
  });

const ask = async (server = app.server) => {
  const beganAt = performance.now();
  const reply = await server.inject(`/avatars/${user}/ab12.webp?size=16`);
  return { reply, elapsedMs: performance.now() - beganAt };
};

const expectHealed = async (): Promise<void> => {
  // The failure is remembered; a missing object is looked for again as soon as its response says.
  app.clock.advance(30_000);
  const { reply } = await ask();
  expect(reply.statusCode).toBe(200);
  expect(reply.headers['content-type']).toBe('image/webp');
  expect(reply.headers['cache-status']).toContain('fwd=miss');
  expect((await ask()).reply.headers['cache-status']).toContain('hit');
};

describe('a render meets', () => {
  beforeEach(() => {
    vi.spyOn(Math, 'random').mockReturnValue(0); // no wait between two attempts
  });

  /** One request that fails, and that a later one finds nothing of it left behind; gives its log. */
  const expectFailure = async (fault: Fault, status: number, code: string, withinMs = 0) => {
    proxy.spoil(fault);
    const { reply, elapsedMs } = await ask();
    expect([reply.statusCode, reply.json()]).toEqual([status, expect.objectContaining({ code })]);
    expect(elapsedMs).toBeLessThan(withinMs + SLACK_MS);
    const requests = proxy.requests.length;
    const log = textOf(app.log.errors);
    for (const text of [log, reply.body]) {
      expect(text).not.toContain(LOCAL_CREDENTIALS.AWS_SECRET_ACCESS_KEY);
      expect(text).not.toMatch(/Signature=|Credential=/);
    }
    proxy.heal();
    await expectHealed();
    expect(proxy.connections).toBeLessThanOrEqual(1);
    return { log, requests };
  };

  test.each(delays)('%s: ORIGIN_TIMEOUT', async (_, fault, withinMs) => {
    expect((await expectFailure(fault, 504, 'ORIGIN_TIMEOUT', withinMs)).requests).toBe(1);
  });

  test.each(Object.entries(failures))(
    '%s: ORIGIN_ERROR',
    async (_, [fault, cause, requests = 1]) => {
      const failure = await expectFailure(fault, 502, 'ORIGIN_ERROR');
      expect(failure).toEqual({ log: expect.stringMatching(cause), requests });
    },
  );

  test('404 NoSuchKey: UNKNOWN_MEDIA', async () => {
    const fault = refusal('404 Not Found', 'NoSuchKey');
    expect((await expectFailure(fault, 404, 'UNKNOWN_MEDIA')).requests).toBe(1);
  });

  test('one 500 and then an object: 200', async () => {
    proxy.spoil(refusal('500 Internal Server Error', 'InternalError'), 1);
    expect((await ask()).reply.statusCode).toBe(200);
    expect(proxy.requests).toHaveLength(2);
  });

  test('a kept connection that the server has closed: 200', async () => {
    expect((await ask()).reply.statusCode).toBe(200);
    await proxy.refuse();
    await proxy.listen();
    user += 1;
    await s3.put(`avatars/${user}/ab12`, samples.png);
    expect((await ask()).reply.statusCode).toBe(200);
  });

  test('throttling for longer than the first-byte deadline: 504', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.99); // the longest wait between two attempts
    proxy.spoil(refusal('503 Slow Down', 'SlowDown'));
    const { reply, elapsedMs } = await ask();
    expect(reply.json()).toMatchObject({ code: 'ORIGIN_TIMEOUT' });
    expect(elapsedMs).toBeLessThan(FIRST_BYTE_MS + SLACK_MS);
    expect(proxy.requests).toHaveLength(1);
  });

  test('a refused connection: ORIGIN_ERROR', async () => {
    await proxy.refuse();
    const { reply } = await ask();
    expect(reply.json()).toMatchObject({ code: 'ORIGIN_ERROR' });
    expect(textOf(app.log.errors)).toMatch(/ECONNREFUSED, attempts: 3/);
    await proxy.listen();
    await expectHealed();
  });

  test('a client that leaves: the request to S3 ends', async () => {
    proxy.spoil({ kind: 'hang' });
    const client = await app.begin(`/avatars/${user}/ab12.webp`);
    await expect.poll(() => proxy.requests.length).toBe(1);
    expect(proxy.connections).toBe(1);
    client.destroy();
    await expect.poll(() => proxy.connections).toBe(0);
    expect(proxy.requests).toHaveLength(1);
    expect(app.log.entries).toEqual([]);
  });
});

describe('a connection meets', () => {
  /** What one request to a fresh service comes to, with an origin of these options. */
  const outcomeOf = async (options: Partial<S3OriginOptions>) => {
    const broken = await useTestApp({ settings, origin: createOrigin(options) });
    const { reply, elapsedMs } = await ask(broken.server);
    return { code: reply.json().code, elapsedMs, log: textOf(broken.log.errors) };
  };
  const failingLookup: LookupFunction = (host, _options, done) =>
    done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }), '', 4);

  const refusals: Readonly<
    Record<string, readonly [() => Promise<Partial<S3OriginOptions>>, RegExp]>
  > = {
    'a name that is not known': [
      async () => ({ endpoint: 'http://s3.invalid', lookup: failingLookup }),
      /ENOTFOUND, attempts: 3\): getaddrinfo ENOTFOUND s3\.invalid/,
    ],
    'a server that speaks no TLS': [
      async () => ({ endpoint: s3.endpoint.replace('http', 'https') }),
      /EPROTO|ECONNRESET|ERR_SSL/,
    ],
    'a certificate that signs itself': [
      async () => ({ endpoint: await startTlsServer() }),
      /DEPTH_ZERO_SELF_SIGNED_CERT, attempts: 1/,
    ],
  };
  test.each(Object.entries(refusals))('%s: ORIGIN_ERROR', async (_, [prepare, cause]) => {
    const { code, log } = await outcomeOf(await prepare());
    expect([code, log]).toEqual(['ORIGIN_ERROR', expect.stringMatching(cause)]);
  });

  const silences: Readonly<Record<string, () => Promise<Partial<S3OriginOptions>>>> = {
    'a name server that does not respond': async () => ({
      ...{ endpoint: 'http://s3.example', lookup: () => undefined },
    }),
    'a server that accepts no connection': async () => ({ endpoint: await startDeafServer() }),
    // The proxy waits for the end of a request's head.
    'a TLS handshake without end': async () => ({
      endpoint: proxy.endpoint.replace('http', 'https'),
    }),
  };
  test.each(Object.entries(silences))(
    '%s: ORIGIN_TIMEOUT, after the connect deadline',
    async (_, prepare) => {
      const { code, elapsedMs, log } = await outcomeOf(await prepare());
      expect(code).toBe('ORIGIN_TIMEOUT');
      expect(elapsedMs).toBeLessThan(CONNECT_MS + SLACK_MS);
      expect(log).toContain(`No connection within ${CONNECT_MS} ms.`);
      await expect.poll(() => proxy.connections).toBe(0);
    },
  );

  test('a pool that is full: it waits for the first-byte deadline, and no longer', async () => {
    const origin = createOrigin();
    const signal = new AbortController().signal;
    const first = await openStream(origin, `avatars/${user}/ab12`, { signal });
    const waiting = await useTestApp({ settings, origin });
    const late = await ask(waiting.server);
    expect(late.reply.json()).toMatchObject({ code: 'ORIGIN_TIMEOUT' });
    expect(late.elapsedMs).toBeGreaterThan(FIRST_BYTE_MS - 50); // and not the connect deadline
    expect(proxy.requests).toHaveLength(1);

    waiting.clock.advance(2_000);
    const patient = ask(waiting.server);
    first.body.resume();
    expect((await patient).reply.statusCode).toBe(200);
    expect(proxy.connections).toBe(1);
  });
});

/** A server with a certificate that no authority has signed. */
async function startTlsServer(): Promise<string> {
  const [key, cert] = [readFileSync(tlsFiles.key), readFileSync(tlsFiles.cert)];
  const server = createTlsServer({ key, cert }).on('tlsClientError', () => undefined);
  onTestFinished(() => void server.close());
  return `https://127.0.0.1:${await listenLocally(server)}`;
}

/** Listens, but takes no connection out of its queue; when that is full, no other is established. */
async function startDeafServer(): Promise<string> {
  const thread = new Worker(
    `const server = require('node:net').createServer();
    server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      require('node:worker_threads').parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`,
    { eval: true },
  );
  const [port] = (await once(thread, 'message')) as [number];
  const queued = await Promise.all([1, 2].map(() => connectTo(port)));
  onTestFinished(async () => {
    for (const socket of queued) socket.destroy();
    await thread.terminate();
  });
  return `http://127.0.0.1:${port}`;
}

describe('an attachment that is passed on meets', () => {
  const large = Buffer.alloc(20_000_000, 'large object, ');
  let port: number;
  let path: string;
  beforeEach(async () => {
    path = `attachments/1/${user}/large.bin`;
    await s3.put(path, large);
    port = await app.listen();
  });
  /** The deadline is short here, and the machine may be busy. */
  const request = async (): Promise<Response> => {
    for (;;) {
      const reply = await fetch(`http://127.0.0.1:${port}/${path}`);
      if (reply.status !== 504) return reply;
    }
  };

  test.each(['cut', 'reset', 'stall'] as const)(
    '%s in its body: its client sees a broken transfer',
    async (kind) => {
      proxy.spoil({ kind, afterBytes: 1_000_000 });
      const reply = await request();
      expect(reply.status).toBe(200);
      await expect(reply.arrayBuffer()).rejects.toThrow();
      await expect.poll(() => proxy.connections).toBe(0);

      proxy.heal();
      const healed = await request();
      expect(healed.status).toBe(200);
      expect(Buffer.from(await healed.arrayBuffer()).equals(large)).toBe(true);
    },
  );

  test('a client that leaves: the transfer from S3 ends', async () => {
    const client = await app.begin(`/${path}`);
    await once(client, 'data');
    client.destroy();
    await expect.poll(() => proxy.connections).toBe(0);
    expect(proxy.requests).toHaveLength(1);
    expect(app.log.entries).toEqual([]);
  });

  test('a slow client: it gets all of it, however long it takes', async () => {
    const reply = await request();
    const reader = (reply.body ?? new ReadableStream()).getReader();
    let received = (await reader.read()).value?.length ?? 0;
    await new Promise((resolve) => setTimeout(resolve, 2.5 * WHOLE_BODY_MS));
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      received += part.value.length;
    }
    expect(received).toBe(large.length);
  });
});

describe('the S3 origin', () => {
  const signal = new AbortController().signal;
  const read = async (origin = createOrigin(), key = `avatars/${user}/ab12`) => {
    const { body } = await openStream(origin, key, { signal });
    body.resume();
    await once(body, 'end');
  };

  test('sends one GET per read, on one connection, and leaves no listener on it', async () => {
    const origin = createOrigin();
    const connections = new Set<number>();
    for (let count = 0; count < 20; count += 1) {
      await read(origin);
      connections.add(proxy.connections);
    }
    expect(proxy.requests.map((head) => head.split(' ')[0])).toEqual(Array(20).fill('GET'));
    expect(connections).toEqual(new Set([1]));
    expect(warnings.map(({ message }) => message)).not.toContainEqual(
      expect.stringMatching(/listeners/),
    );
  });

  test('asks for no checksum, and signs with a session token where there is one', async () => {
    vi.stubEnv('AWS_SESSION_TOKEN', 'token-of-a-session');
    proxy.spoil(refusal('403 Forbidden', 'InvalidToken', 'token-of-a-session is malformed'));
    await expect(read()).rejects.toMatchObject({
      code: 'ORIGIN_ERROR',
      cause: { message: 'InvalidToken (HTTP 403, attempts: 1): *** is malformed' },
    });
    vi.unstubAllEnvs();
    expect(proxy.requests).toHaveLength(1);
    expect(proxy.requests[0]).toContain('x-amz-security-token: token-of-a-session\r\n');
    expect(proxy.requests[0]).not.toMatch(/checksum/i);
  });

  test('without credentials is a failing origin, and says so', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', undefined);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', undefined);
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    vi.stubEnv('HOME', '/nowhere');
    await expect(read()).rejects.toMatchObject({
      code: 'ORIGIN_ERROR',
      cause: { message: expect.stringMatching(/^CredentialsProviderError: .*credentials/) },
    });
    vi.unstubAllEnvs();
    expect(proxy.requests).toEqual([]);
  });
});
