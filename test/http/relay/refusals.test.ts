import { beforeAll, describe, expect, test } from 'vitest';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { sendRaw } from '../../support/http/raw-http.ts';
import type { WireResponse } from '../../support/http/wire-response.ts';
import { OpenapiReader } from '../../support/openapi/openapi-reader.ts';
import { samples } from '../../support/test-app.ts';
import {
  capabilityOf,
  type RelayApp,
  startRelayApp,
  uploadTarget,
} from '../../support/uploads/relay-app.ts';

const reader = new OpenapiReader('docs/openapi.json');

let relay: RelayApp;
beforeAll(async () => {
  relay = await startRelayApp({ settings: { RELAY_MAX_BYTES: '1000000' } });
  await relay.put('emojis/9', samples.png);
  return relay.close;
});

const KEY = 'attachments/1/2/name.bin';
const nowSeconds = Math.floor(Date.now() / 1000);
const at = (path: string, t: string): string => `/v1/relay/${path}?t=${t}`;
const foreign = new SigningKeys(['a-key-that-nobody-here-has-ever-heard-of']);
const part = { part: { uploadId: '2~x', partNumber: 1 } };

interface Row {
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const row = (target: string, headers = {}): Row => ({ target, headers });
const upload = (key: string, terms = {}, query = ''): Row => row(uploadTarget(key, terms) + query);
const ofBytes = (length: number) => ({ 'Content-Length': String(length) });

/** What head and capability can refuse, by the code: no body is asked for. */
const rows: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  UNAUTHORIZED: {
    'no capability': row(`/v1/relay/${KEY}`),
    two: upload(KEY, {}, `&t=${capabilityOf(KEY)}`),
    'one of another key': row(at(KEY, capabilityOf(KEY, {}, foreign))),
    'one that has expired': upload(KEY, { expiresAtSeconds: nowSeconds - 1 }),
  },
  ACCESS_DENIED: {
    'one for another key': row(at(KEY, capabilityOf('attachments/1/2/other'))),
    'a part of a folder': row(`${uploadTarget(KEY, part)}&uploadId=2~x&partNumber=1`, ofBytes(1)),
    'a part that the query does not name': upload(KEY, part),
    'another part': upload(KEY, part, '&uploadId=2~x&partNumber=2'),
    'a part in another spelling': upload(KEY, part, '&uploadId=2~x&partNumber=01'),
    'a part twice': upload(KEY, part, '&uploadId=2~x&partNumber=1&partNumber=1'),
    'a part where the whole is permitted': upload(KEY, {}, '&uploadId=x&partNumber=1'),
  },
  INVALID_FORM_BODY: {
    'a way out in its key': row(at('../../etc/passwd', capabilityOf('../../etc/passwd'))),
    'an encoded slash in a name': row(
      at('attachments/1/2/a%2Fb', capabilityOf('attachments/1/2/a/b')),
    ),
    'a key outside of every resource': upload('backups/database'),
    'a malformed escape': row(at('attachments/1/2/%zz', capabilityOf(KEY))),
    'a range': row(uploadTarget(KEY), { 'Content-Range': 'bytes 0-1/2', ...ofBytes(2) }),
  },
  PAYLOAD_TOO_LARGE: {
    'more than its capability allows': row(uploadTarget(KEY, { maxBytes: 10 }), ofBytes(11)),
    'more than the service allows': row(
      uploadTarget(KEY, { maxBytes: 2_000_000 }),
      ofBytes(1_000_001),
    ),
    'a length beyond all numbers': row(uploadTarget(KEY), { 'Content-Length': '9'.repeat(16) }),
  },
  MEDIA_EXISTS: { 'a key that has an object': row(uploadTarget('emojis/9'), ofBytes(5)) },
};

const statuses: Readonly<Record<string, number>> = {
  UNAUTHORIZED: 401,
  ACCESS_DENIED: 403,
  INVALID_FORM_BODY: 400,
  PAYLOAD_TOO_LARGE: 413,
  MEDIA_EXISTS: 409,
  UNSUPPORTED_MEDIA_TYPE: 415,
};

/** Sends an upload, whose response must be as documented. */
async function put(target: string, headers: Readonly<Record<string, string>>, body = '') {
  const answer = await sendRaw(relay.port, 'PUT', target, headers, body);
  const [, documented] = reader.operations('uploads');
  expect(reader.findDeviations(documented ?? expect.fail(), answer)).toEqual([]);
  return answer;
}

function expectRefusal(answer: WireResponse, code: string): void {
  const { errors, ...body } = JSON.parse(answer.body.toString());
  expect([answer.status, body.code]).toEqual([statuses[code], code]);
  expect(Object.keys(body)).toEqual(['code', 'message']);
  expect(errors === undefined).toBe(code !== 'INVALID_FORM_BODY');
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'access-control-allow-origin': '*',
    'x-content-type-options': 'nosniff',
  });
  expect(answer.headers).not.toHaveProperty('www-authenticate');
}

describe('an upload is refused before its body is asked for, with', () => {
  test.each(
    Object.entries(rows).flatMap(([code, each]) =>
      Object.entries(each).map(([name, asked]) => ({ name, code, ...asked })),
    ),
  )('$name: $code', async ({ target, headers, code }) => {
    const before = await relay.list();
    const expecting = { 'Content-Length': '5', Expect: '100-continue', ...headers };
    expectRefusal(await put(target, expecting), code);
    expect(await relay.list()).toEqual(before);
  });

  test('a head of 24 KiB and more, and no other head of more than 16 KiB', async () => {
    const filler = (length: number) => ({ 'X-Filler': 'x'.repeat(length) });
    const length = { 'Content-Length': '0' };
    const long = at(KEY.replace('name', 'long'), capabilityOf(KEY.replace('name', 'long')));
    const taken = await put(long, { ...length, ...filler(23_000) });
    expect(taken.status).toBe(200);
    expect((await put(uploadTarget(KEY), filler(24_600))).status).toBe(431);
    for (const [method, target, size] of [
      ['GET', '/emojis/9.png', 17_000],
      ['OPTIONS', uploadTarget(KEY), 17_000],
    ] as const) {
      expect((await sendRaw(relay.port, method, target, filler(size))).status).toBe(431);
    }
  });
});

describe('an upload that is cut off leaves nothing, with', () => {
  const chunked = { 'Transfer-Encoding': 'chunked' };
  const piece = `${(60_000).toString(16)}\r\n${'x'.repeat(60_000)}\r\n`;

  test.each([
    ['more in chunks than the service allows', {}, piece.repeat(20), 'PAYLOAD_TOO_LARGE'],
    [
      'more in chunks than its capability allows',
      { maxBytes: 9 },
      'a\r\n0123456789\r\n0\r\n\r\n',
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'a text that is said to be a picture',
      { contentType: 'image/png' },
      '5\r\nhello\r\n0\r\n\r\n',
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'nothing that is said to be a picture',
      { contentType: 'IMAGE/AVIF' },
      '0\r\n\r\n',
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['chunks that are none', {}, '5\r\nhelloxx', 'INVALID_FORM_BODY'],
    ['chunks that turn into none', {}, `${piece}zz\r\n`, 'INVALID_FORM_BODY'],
  ])('%s', async (_, terms, body, code) => {
    const before = await relay.list();
    const answer = await put(uploadTarget('attachments/9/1/a', terms), chunked, body);
    expect([answer.status, JSON.parse(answer.body.toString()).code]).toEqual([
      statuses[code],
      code,
    ]);
    await expect.poll(relay.list).toEqual(before);
  });

  test.each(['image/svg+xml', 'image/x-icon', 'text/html', 'image/pngx', ''])(
    'no look at bytes that are said to be %s',
    async (type) => {
      const target = uploadTarget(`attachments/9/2/${type.length}${type.slice(-3)}`);
      const headers = { 'Content-Type': type, 'Content-Length': '5' };
      expect((await put(target, headers, 'hello')).status).toBe(200);
    },
  );

  test.each(
    (['jpeg', 'png', 'webp', 'animatedGif'] as const).map((name) => [name, samples[name]] as const),
  )('no refusal of a picture whatever picture it is said to be: %s', async (name, bytes) => {
    const target = uploadTarget(`attachments/9/3/${name}`, { contentType: 'image/heic; x=y' });
    expect((await put(target, ofBytes(bytes.length), bytes.toString('latin1'))).status).toBe(200);
    expect((await relay.read(`attachments/9/3/${name}`)).equals(bytes)).toBe(true);
  });
});
