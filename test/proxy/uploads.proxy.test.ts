import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { expect, test } from 'vitest';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';
import { useStack } from './stack.ts';

const stack = await useStack({ RELAY_SIGNING_KEYS: RELAY_KEY, RELAY_MAX_BYTES: '600000000' });
const MEBIBYTE = 1024 * 1024;

interface Sent {
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly pieces?: readonly Buffer[];
  /** Called after the first piece. */
  readonly afterFirst?: () => Promise<void>;
}

async function upload(target: string, { headers = {}, pieces = [], afterFirst }: Sent = {}) {
  const { port, certificate: ca } = stack.nginx;
  const sent = request({ port, host: '127.0.0.1', ca, method: 'PUT', path: target, headers });
  sent.on('error', () => undefined);
  const answer = once(sent, 'response');
  for (const [index, piece] of pieces.entries()) {
    sent.write(piece);
    if (index === 0) await afterFirst?.();
  }
  sent.end();
  const [response] = (await answer) as [IncomingMessage];
  let body = '';
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, headers: response.headers, body };
}

test.each([
  ['with its length', { 'Content-Length': 2 * MEBIBYTE }],
  ['in chunks', {}],
])(
  'an upload %s reaches Darkroom while it is sent, with its type and nothing else of the client',
  async (name, length) => {
    const key = `attachments/1/1/${name} é.bin`;
    const response = await upload(uploadTarget(key), {
      headers: {
        ...length,
        'Content-Type': 'video/mp4',
        Cookie: 'a=b',
        Authorization: 'Bearer x',
      },
      pieces: [Buffer.alloc(MEBIBYTE), Buffer.alloc(MEBIBYTE)],
      // Not buffered: Darkroom is asked before the end.
      afterFirst: () => expect.poll(() => stack.relay.requests.length).toBe(1),
    });
    expect([response.status, response.body]).toEqual([200, '']);
    expect(response.headers.etag).toMatch(/^"/);
    const [forwarded] = stack.relay.requests;
    expect(forwarded?.headers).toMatchObject({ 'content-type': 'video/mp4' });
    expect(Object.keys(forwarded?.headers ?? {})).not.toContain('cookie');
    expect(Object.keys(forwarded?.headers ?? {})).not.toContain('authorization');
    const path = `/attachments/1/1/${encodeURIComponent(`${name} é.bin`)}`;
    expect((await stack.ask(path)).body.length).toBe(2 * MEBIBYTE);
    expect((await upload(uploadTarget(key), { headers: { 'Content-Length': 0 } })).status).toBe(
      409,
    );
  },
);

test('nginx refuses an upload of more than 500 MiB with the error of the contract', async () => {
  const headers = { 'Content-Length': 500 * MEBIBYTE + 1 };
  const { status, body } = await upload(uploadTarget('attachments/1/2/a'), { headers });
  expect([status, JSON.parse(body).code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  expect(stack.relay.requests).toHaveLength(0);
});

test('nginx passes on the errors of uploads, and caches none', async () => {
  for (const [target, status] of [
    ['/v1/relay/emojis/9', 401],
    [uploadTarget('emojis/8').replace('emojis/8', 'emojis/9'), 403],
    [uploadTarget('secrets/8'), 400],
    [uploadTarget('emojis/9', { maxBytes: 1 }), 413],
  ] as const) {
    const response = await upload(target, {
      headers: { 'Content-Length': 5 },
      pieces: [Buffer.from('12345')],
    });
    expect([response.status, response.headers['cache-control']]).toEqual([status, 'no-store']);
  }
});

test('nginx passes on an upload with a capability of 16 KiB', async () => {
  const long = uploadTarget('attachments/1/4/a', {
    part: { uploadId: 'x'.repeat(11_500), partNumber: 1 },
  });
  expect((await upload(long, { headers: { 'Content-Length': 0 } })).status).toBe(403);
});

test('nginx does not send an upload a second time after Darkroom has closed the connection', async () => {
  const pieces = [Buffer.alloc(1_000), Buffer.alloc(1_000)];
  const afterFirst = async (): Promise<void> => {
    await expect.poll(() => stack.relay.requests.length).toBe(1);
    await stack.stopDarkroom();
  };
  const { status } = await upload(uploadTarget('attachments/1/3/a'), {
    pieces,
    afterFirst,
  });
  expect(status).toBe(502);
  expect(stack.relay.requests).toHaveLength(1);
});
