import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { request } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tlsFiles } from '../../support/http/tls-files.ts';
import {
  createTestApp,
  RecordingRequestLog,
  samples,
  type TestApp,
} from '../../support/test-app.ts';

const settings = { TLS_CERT_FILE: tlsFiles.cert, TLS_KEY_FILE: tlsFiles.key };

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

/** One request over HTTP/2; `abortAfterBytes` hangs up in mid-body. */
function ask(session: ClientHttp2Session, path: string, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': path, ':method': method });
    const chunks: Buffer[] = [];
    let headers: Record<string, unknown> = {};
    stream.on('response', (received) => {
      headers = received;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () =>
      resolve({ status: Number(headers[':status']), headers, body: Buffer.concat(chunks) }),
    );
    stream.on('error', reject);
    stream.end();
  });
}

describe('with a certificate, the listener', () => {
  const log = new RecordingRequestLog('all');
  let app: TestApp;
  let port: number;
  beforeAll(async () => {
    app = await createTestApp({ settings, requestLog: log });
    app.originals.put('avatars/1/ab12', samples.png);
    app.originals.put('attachments/1/2/large.bin', Buffer.alloc(20_000_000));
    port = await app.listen();
  });
  afterAll(() => app.close());

  test('tells the address of a client of HTTP/2', async () => {
    const path = '/avatars/1/logged.webp';
    await withSession((session) => ask(session, path));
    const find = () => log.lines.find(({ asset }) => asset.includes('logged'));
    await expect.poll(find).toBeDefined();
    expect(find()?.client).toBe('127.0.0.1');
  });

  const withSession = async <Result>(
    use: (session: ClientHttp2Session) => Promise<Result>,
  ): Promise<Result> => {
    const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    try {
      return await use(session);
    } finally {
      session.close();
    }
  };

  test('speaks HTTP/2', async () => {
    await withSession(async (session) => {
      const image = await ask(session, '/avatars/1/ab12.webp?size=64');
      expect(image.status).toBe(200);
      expect(image.headers).toMatchObject({ 'content-type': 'image/webp' });
      expect(image.headers['content-length']).toBe(String(image.body.length));
      expect(image.body.subarray(8, 12).toString()).toBe('WEBP');

      const head = await ask(session, '/avatars/1/ab12.webp?size=64', 'HEAD');
      expect(head.headers['content-length']).toBe(image.headers['content-length']);
      expect(head.body).toHaveLength(0);

      expect(await ask(session, '/avatars/1/nothing.webp')).toMatchObject({ status: 404 });
      expect(await ask(session, '/avatars/x/y.webp')).toMatchObject({ status: 400 });
      expect(await ask(session, '/avatars/1/ab12.webp', 'DELETE')).toMatchObject({
        status: 405,
        headers: { allow: 'GET, HEAD, OPTIONS' },
      });
      expect(await ask(session, '/avatars/1/ab12.webp', 'OPTIONS')).toMatchObject({ status: 204 });
      const large = await ask(session, '/attachments/1/2/large.bin');
      expect(large.body).toHaveLength(20_000_000);
    });
    expect(app.log.errors).toEqual([]);
  });

  test('ends the reading of the origin when an HTTP/2 client leaves in mid-body', async () => {
    await withSession(async (session) => {
      const stream = session.request({ ':path': '/attachments/1/2/large.bin' });
      await new Promise((resolve) => stream.once('data', resolve));
      stream.close(constants.NGHTTP2_CANCEL);
      await new Promise((resolve) => stream.once('close', resolve));
      expect(await ask(session, '/avatars/0.png')).toMatchObject({ status: 200 });
    });
    await expect.poll(() => app.originals.openBodies).toBe(0);
    expect(app.log.errors).toEqual([]);
  });

  test('speaks HTTP/1.1 to who wants it', async () => {
    const status = await new Promise((resolve, reject) => {
      const path = '/avatars/1/ab12.webp?size=64';
      request(
        { host: '127.0.0.1', port, path, rejectUnauthorized: false, agent: false },
        (answer) => {
          answer.resume();
          resolve([answer.httpVersion, answer.statusCode]);
        },
      )
        .on('error', reject)
        .end();
    });
    expect(status).toEqual(['1.1', 200]);
  });

  test.each([
    ['TLSv1.1', undefined],
    ['TLSv1.2', 'TLSv1.2'],
    ['TLSv1.3', 'TLSv1.3'],
  ] as const)('asked for %s speaks %s', async (version, expected) => {
    const spoken = await new Promise((resolve) => {
      const socket = connectTls({
        host: '127.0.0.1',
        port,
        rejectUnauthorized: false,
        minVersion: version,
        maxVersion: version,
        // OpenSSL 3 offers what is older than 1.2 at its lowest security level alone.
        ciphers: 'DEFAULT@SECLEVEL=0',
      });
      socket.once('secureConnect', () => {
        resolve(socket.getProtocol());
        socket.destroy();
      });
      socket.once('error', () => resolve(undefined));
    });
    expect(spoken).toBe(expected);
  });

  test('stops though an HTTP/2 session is open', async () => {
    const second = await createTestApp({ settings });
    const session = connect(`https://127.0.0.1:${await second.listen()}`, {
      rejectUnauthorized: false,
    });
    session.on('error', () => undefined);
    expect(await ask(session, '/avatars/0.png')).toMatchObject({ status: 200 });
    await second.close();
    await expect.poll(() => session.destroyed).toBe(true);
  });
});
