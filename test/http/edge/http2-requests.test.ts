import { type ClientHttp2Session, connect } from 'node:http2';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tlsFiles } from '../../support/http/tls-files.ts';
import { createTestApp, type TestApp } from '../../support/test-app.ts';
import { judge } from '../../surface/contract-oracle.ts';
import { broken, drawn, foreign, hostile, spellings } from '../../surface/contract-requests.ts';

/** An answer, or why there was none. */
type Answer =
  | {
      readonly status: number;
      readonly headers: Readonly<Record<string, unknown>>;
      readonly code: string;
    }
  | { readonly error: string };

let app: TestApp;
let session: ClientHttp2Session;

beforeAll(async () => {
  app = await createTestApp({
    settings: { TLS_CERT_FILE: tlsFiles.cert, TLS_KEY_FILE: tlsFiles.key },
  });
  const port = await app.listen();
  session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
});
afterAll(async () => {
  session.close();
  await app.close();
});

function ask(headers: Readonly<Record<string, string>>): Promise<Answer> {
  return new Promise((resolve) => {
    const stream = session.request(headers);
    let received: Record<string, unknown> = {};
    const chunks: Buffer[] = [];
    stream.on('response', (head) => {
      received = head;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', ({ message }) => resolve({ error: message }));
    stream.on('end', () => {
      const code = /^\{"code":"(\w+)"/.exec(Buffer.concat(chunks).toString())?.[1] ?? '';
      resolve({ status: Number(received[':status']), headers: received, code });
    });
    stream.end();
  });
}

describe('over HTTP/2', () => {
  // There, a method is any token; Fastify's router knows those of Node's parser of HTTP/1.1.
  it.each(['get', 'FROBNICATE', 'x', '__proto__', 'constructor', 'M'.repeat(500), "!#$%&'*+"])(
    'a method that nobody knows is not allowed: %s',
    async (method) => {
      const known = await ask({ ':method': method, ':path': '/avatars/0.png' });
      expect(known).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED' });
      expect(known).toMatchObject({
        headers: {
          allow: 'GET, HEAD, OPTIONS',
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
          'content-security-policy': "default-src 'none'; sandbox",
          'access-control-allow-origin': '*',
        },
      });
      const unknown = await ask({ ':method': method, ':path': '/nothing' });
      expect(unknown).toMatchObject({ status: 404, code: 'NOT_FOUND' });
      expect(app.log.errors).toEqual([]);
    },
  );

  it('expectations change nothing', async () => {
    for (const expectation of ['100-continue', 'the-unexpected']) {
      const answer = await ask({ ':path': '/avatars/0.png', expect: expectation });
      expect(answer).toMatchObject({
        status: 200,
        headers: { 'x-content-type-options': 'nosniff' },
      });
    }
  });

  it('targets are what the contract says, raw bytes above 0x7f included', async () => {
    // Node's parser of HTTP/1.1 lets no such byte through; nghttp2 does.
    const target = fc
      .oneof(
        hostile,
        drawn.chain(spellings),
        broken.map((each) => each.target),
        foreign,
      )
      .map((text) => Buffer.from(text).toString('latin1'))
      .filter((text) => /^\/[!-~\u0080-\u00ff]*$/.test(text));
    const seen: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(target, async (path) => {
        const verdict = judge(path);
        const isAvatar = verdict.kind === 'default avatar' && Number(verdict.index) < 6;
        const code = {
          'unknown path': 'NOT_FOUND',
          refused: 'INVALID_FORM_BODY',
          'default avatar': isAvatar ? '' : 'UNKNOWN_MEDIA',
          media: 'UNKNOWN_MEDIA', // there are no originals
        }[verdict.kind];
        const isRaw = /[\u0080-\u00ff]/.test(path);
        seen[isRaw ? 'raw' : code] = (seen[isRaw ? 'raw' : code] ?? 0) + 1;
        expect(await ask({ ':path': path })).toMatchObject({ code });
      }),
      { numRuns: 1_000 },
    );
    for (const kind of ['raw', 'NOT_FOUND', 'INVALID_FORM_BODY', 'UNKNOWN_MEDIA']) {
      expect(seen[kind], kind).toBeGreaterThan(10);
    }
    expect(app.log.errors).toEqual([]);
  });
});
