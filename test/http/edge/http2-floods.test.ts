import { once } from 'node:events';
import { connect, constants } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  connectFrames,
  END_HEADERS,
  END_STREAM,
  farewellsIn,
  frame,
  greeting,
  headerBlock,
} from '../../support/http/http2-frames.ts';
import { tlsFiles } from '../../support/http/tls-files.ts';
import { createTestApp, type TestApp } from '../../support/test-app.ts';
import { ZerosOrigin } from '../../support/zeros-origin.ts';

let app: TestApp;
let port: number;
let origin: ZerosOrigin;
let requests = 0;

beforeEach(async () => {
  origin = new ZerosOrigin(10_000_000);
  app = await createTestApp({
    origin,
    settings: { TLS_CERT_FILE: tlsFiles.cert, TLS_KEY_FILE: tlsFiles.key },
    clientLimits: { sweepIntervalMs: 20 },
  });
  requests = 0;
  app.server.server.on('request', () => {
    requests += 1;
  });
  port = await app.listen();
});

afterEach(() => app.close());

/** Sends the frames, in as many parts, until the server hangs up; tells its last words. */
async function flood(parts: readonly Buffer[], isReading = true): Promise<{ farewells: number[] }> {
  const socket = await connectFrames(port);
  const chunks: Buffer[] = [];
  if (isReading) socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.write(greeting);
  for (const part of parts) {
    if (!socket.writable) break;
    if (!socket.write(part)) await drained(socket);
  }
  await closed(socket);
  return { farewells: farewellsIn(Buffer.concat(chunks)) };
}

function drained(socket: TLSSocket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('drain', resolve);
    socket.once('close', resolve);
  });
}

async function closed(socket: TLSSocket): Promise<void> {
  if (!socket.closed) await once(socket.resume(), 'close');
}

async function expectAlive(): Promise<void> {
  const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
  const stream = session.request({ ':path': '/avatars/0.png' });
  const [headers] = await once(stream, 'response');
  expect(headers[':status']).toBe(200);
  await once(stream.resume(), 'end');
  session.close();
  await expect.poll(() => origin.openBodies).toBe(0);
  expect(app.log.errors).toEqual([]);
}

const open = (stream: number, path: string): Buffer =>
  frame('headers', END_HEADERS + END_STREAM, stream, headerBlock(path));
const CANCEL = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]);
const repeat = (count: number, make: (index: number) => Buffer): Buffer[] =>
  Array.from({ length: count }, (_, index) => make(index));
const ids = (index: number): number => 2 * index + 1;

describe('a client of HTTP/2', () => {
  it('that takes back what it asks for, again and again, is sent away (CVE-2023-44487)', async () => {
    const { farewells } = await flood(
      repeat(20_000, (index) =>
        Buffer.concat([
          open(ids(index), '/attachments/1/2/large'),
          frame('reset', 0, ids(index), CANCEL),
        ]),
      ),
    );
    expect(farewells.at(-1)).not.toBe(constants.NGHTTP2_NO_ERROR);
    expect(requests).toBeLessThan(2_000);
    await expectAlive();
  });

  it('that makes the service take back what it asks for, likewise', async () => {
    // A window update of 0 is an error of the stream.
    const { farewells } = await flood(
      repeat(20_000, (index) =>
        Buffer.concat([
          open(ids(index), '/attachments/1/2/large'),
          frame('windowUpdate', 0, ids(index), Buffer.alloc(4)),
        ]),
      ),
    );
    expect(farewells.at(-1)).not.toBe(constants.NGHTTP2_NO_ERROR);
    expect(requests).toBeLessThan(5_000);
    await expectAlive();
  });

  it('that opens more streams than it may is refused those', async () => {
    const socket = await connectFrames(port);
    socket.resume();
    socket.write(greeting);
    for (let index = 0; index < 1_000; index += 1) {
      socket.write(open(ids(index), '/attachments/1/2/large'));
    }
    await expect.poll(() => requests).toBeGreaterThanOrEqual(100);
    await closed(socket.end());
    expect(requests).toBeLessThanOrEqual(250); // some were done before the last ones came
    await expectAlive();
  });

  it.each([
    ['pings', frame('ping', 0, 0, Buffer.alloc(8))],
    ['settings', frame('settings', 0, 0)],
  ])('that wants %s confirmed and does not read is sent away', async (_, one) => {
    await flood(
      repeat(2_000, () => Buffer.concat(Array(1_000).fill(one))),
      false,
    );
    await expectAlive();
  });

  it('whose header block never ends is sent away (CVE-2024-27983)', async () => {
    const part = frame('continuation', 0, 1, Buffer.alloc(16_000, 0x82));
    await flood([
      frame('headers', END_STREAM, 1, headerBlock('/avatars/0.png')),
      ...Array(1_000).fill(part),
    ]);
    expect(requests).toBe(0);
    await expectAlive();
  });

  it('whose header block unpacks into a thousand times its size is refused', async () => {
    // One field of 4 kB, put into the table once and named by one byte each time.
    const field = Buffer.concat([
      Buffer.from([0x40, 1, 0x78, 0x7f, 0x80 + ((3_900 - 127) & 0x7f), (3_900 - 127) >> 7]),
      Buffer.alloc(3_900, 'x'),
    ]);
    const block = Buffer.concat([
      headerBlock('/attachments/1/2/large'),
      field,
      Buffer.alloc(10_000, 0x80 + 62),
    ]);
    const socket = await connectFrames(port);
    socket.resume();
    socket.write(greeting);
    socket.write(frame('headers', END_HEADERS + END_STREAM, 1, block));
    socket.write(open(3, '/avatars/0.png'));
    await expect.poll(() => requests).toBe(1);
    socket.destroy();
    await expectAlive();
  });

  it.each([
    ['noise', Buffer.alloc(100_000, 'noise')],
    ['HTTP/1.1', Buffer.from('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n')],
    [
      'a frame that is too long',
      Buffer.concat([greeting, frame('data', 0, 1, Buffer.alloc(20_000))]),
    ],
    ['data of no stream', Buffer.concat([greeting, frame('data', 0, 1, Buffer.alloc(10))])],
    [
      'half a frame, and the end',
      Buffer.concat([greeting, frame('ping', 0, 0, Buffer.alloc(8)).subarray(0, 12)]),
    ],
  ])('that sends %s is sent away', async (_, bytes) => {
    const socket = await connectFrames(port);
    socket.resume();
    socket.end(bytes);
    await closed(socket);
    expect(requests).toBe(0);
    await expectAlive();
  });

  it('that opens a tunnel gets none', async () => {
    const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    const stream = session.request({ ':method': 'CONNECT', ':authority': 'a:80' });
    const [headers] = await once(stream, 'response');
    expect(headers).toMatchObject({ ':status': 405, allow: 'GET, HEAD, OPTIONS' });
    stream.destroy();
    session.destroy();
    await expectAlive();
  });

  it.each(['100-continue', 'x'])('that expects %s gets an answer', async (expectation) => {
    const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    const stream = session.request({ ':path': '/avatars/0.png', expect: expectation });
    const [headers] = await once(stream, 'response');
    expect(headers[':status']).toBe(200);
    stream.destroy();
    session.destroy();
    await expectAlive();
  });
});
