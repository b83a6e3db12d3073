import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signCapabilityText } from '../../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { type RawAnswer, sendRaw } from '../../support/http/raw-http.ts';
import { samples } from '../../support/test-app.ts';
import {
  capabilityOf,
  type RelayApp,
  relayKeys,
  startRelayApp,
  uploadTarget,
} from '../../support/uploads/relay-app.ts';

let relay: RelayApp;
beforeAll(async () => {
  relay = await startRelayApp({ settings: { RELAY_MAX_BYTES: '1000000' } });
  await relay.put('emojis/9', samples.png);
});
afterAll(() => relay?.close());

const KEY = 'attachments/1/2/name.bin';
const nowSeconds = Math.floor(Date.now() / 1000);
const at = (path: string, t: string): string => `/v1/relay/${path}?t=${t}`;
const foreign = new SigningKeys(['a-key-that-nobody-here-has-ever-heard-of']);
const part = { part: { uploadId: '2~x', partNumber: 1 } };
const jsonOf = (json: string): string => at(KEY, signCapabilityText(json, relayKeys));

/** A capability of some 16 KiB: the rest is a field that is passed over. */
function ofLength(length: number): string {
  for (let size = 12_000; ; size += 1) {
    const fields = { k: KEY, m: 'put', e: nowSeconds + 600, x: 'x'.repeat(size) };
    const text = signCapabilityText(JSON.stringify(fields), relayKeys);
    if (text.length >= length) return text;
  }
}

interface Row {
  readonly name: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly code: string;
}

/** What head and capability can refuse: no body is asked for. */
const rows: readonly Row[] = [
  { name: 'no capability', target: `/v1/relay/${KEY}`, code: 'UNAUTHORIZED' },
  { name: 'an empty one', target: at(KEY, ''), code: 'UNAUTHORIZED' },
  { name: 'two', target: `${uploadTarget(KEY)}&t=${capabilityOf(KEY)}`, code: 'UNAUTHORIZED' },
  {
    name: 'one of another key',
    target: at(KEY, capabilityOf(KEY, {}, foreign)),
    code: 'UNAUTHORIZED',
  },
  {
    name: 'one without its signature',
    target: at(KEY, capabilityOf(KEY).split('.')[0] ?? ''),
    code: 'UNAUTHORIZED',
  },
  { name: 'padding', target: `${uploadTarget(KEY)}=`, code: 'UNAUTHORIZED' },
  { name: 'a space in it', target: `${uploadTarget(KEY)}%20`, code: 'UNAUTHORIZED' },
  {
    name: 'one that has expired',
    target: uploadTarget(KEY, { expiresAtSeconds: nowSeconds - 1 }),
    code: 'UNAUTHORIZED',
  },
  {
    name: 'a field twice',
    target: jsonOf(`{"k":"emojis/1","k":"${KEY}","m":"put","e":9999999999}`),
    code: 'UNAUTHORIZED',
  },
  {
    name: 'a field of the wrong type',
    target: jsonOf(`{"k":"${KEY}","m":"put","e":"9999999999"}`),
    code: 'UNAUTHORIZED',
  },
  {
    name: 'another purpose',
    target: jsonOf(`{"k":"${KEY}","m":"get","e":9999999999}`),
    code: 'UNAUTHORIZED',
  },
  { name: 'one of 16 KiB and more', target: at(KEY, ofLength(16_385)), code: 'UNAUTHORIZED' },
  {
    name: 'one for another key',
    target: at(KEY, capabilityOf('attachments/1/2/other')),
    code: 'ACCESS_DENIED',
  },
  {
    name: 'a part of a folder',
    target: `${uploadTarget(KEY, part)}&uploadId=2~x&partNumber=1`,
    headers: { 'Content-Length': '1' },
    code: 'ACCESS_DENIED',
  },
  {
    name: 'a part that the query does not name',
    target: uploadTarget(KEY, part),
    code: 'ACCESS_DENIED',
  },
  {
    name: 'another part',
    target: `${uploadTarget(KEY, part)}&uploadId=2~x&partNumber=2`,
    code: 'ACCESS_DENIED',
  },
  {
    name: 'a part in another spelling',
    target: `${uploadTarget(KEY, part)}&uploadId=2~x&partNumber=01`,
    code: 'ACCESS_DENIED',
  },
  {
    name: 'a part twice',
    target: `${uploadTarget(KEY, part)}&uploadId=2~x&partNumber=1&partNumber=1`,
    code: 'ACCESS_DENIED',
  },
  {
    name: 'a part where the whole is permitted',
    target: `${uploadTarget(KEY)}&uploadId=x&partNumber=1`,
    code: 'ACCESS_DENIED',
  },
  {
    name: 'dots in its key',
    target: at('attachments/1/2/..', capabilityOf('attachments/1/2/..')),
    code: 'INVALID_FORM_BODY',
  },
  {
    name: 'a way out in its key',
    target: at('../../etc/passwd', capabilityOf('../../etc/passwd')),
    code: 'INVALID_FORM_BODY',
  },
  {
    name: 'encoded slashes',
    target: at('avatars%2F1%2Fab12', capabilityOf('avatars/1/ab12')),
    code: 'INVALID_FORM_BODY',
  },
  {
    name: 'an encoded slash in a name',
    target: at('attachments/1/2/a%2Fb', capabilityOf('attachments/1/2/a/b')),
    code: 'INVALID_FORM_BODY',
  },
  {
    name: 'a key outside of every resource',
    target: uploadTarget('backups/database'),
    code: 'INVALID_FORM_BODY',
  },
  {
    name: 'the key of a temporary file',
    target: uploadTarget('.incoming-0123'),
    code: 'INVALID_FORM_BODY',
  },
  {
    name: 'the mark of an animation',
    target: uploadTarget('avatars/1/a_ab12'),
    code: 'INVALID_FORM_BODY',
  },
  {
    name: 'a malformed escape',
    target: at('attachments/1/2/%zz', capabilityOf(KEY)),
    code: 'INVALID_FORM_BODY',
  },
  {
    name: 'a range',
    target: uploadTarget(KEY),
    headers: { 'Content-Range': 'bytes 0-1/2', 'Content-Length': '2' },
    code: 'INVALID_FORM_BODY',
  },
  {
    name: 'more than its capability allows',
    target: uploadTarget(KEY, { maxBytes: 10 }),
    headers: { 'Content-Length': '11' },
    code: 'PAYLOAD_TOO_LARGE',
  },
  {
    name: 'more than the service allows',
    target: uploadTarget(KEY, { maxBytes: 2_000_000 }),
    headers: { 'Content-Length': '1000001' },
    code: 'PAYLOAD_TOO_LARGE',
  },
  {
    name: 'a length beyond all numbers',
    target: uploadTarget(KEY),
    headers: { 'Content-Length': '9999999999999999' },
    code: 'PAYLOAD_TOO_LARGE',
  },
  {
    name: 'a key that has an object',
    target: uploadTarget('emojis/9'),
    headers: { 'Content-Length': '5' },
    code: 'MEDIA_EXISTS',
  },
];

const statuses: Readonly<Record<string, number>> = {
  UNAUTHORIZED: 401,
  ACCESS_DENIED: 403,
  INVALID_FORM_BODY: 400,
  PAYLOAD_TOO_LARGE: 413,
  MEDIA_EXISTS: 409,
};

function expectRefusal(answer: RawAnswer, code: string): void {
  const { errors, ...body } = JSON.parse(answer.body.toString());
  expect([answer.status, body.code]).toEqual([statuses[code] ?? 415, code]);
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
  test.each(rows)('$name: $code', async ({ target, headers, code }) => {
    const expecting = { 'Content-Length': '5', Expect: '100-continue', ...headers };
    const { list } = relay;
    const before = await list();
    expectRefusal(await sendRaw(relay.port, 'PUT', target, expecting), code);
    expect(await list()).toEqual(before);
  });

  test('a head of 24 KiB and more, and no other head of more than 16 KiB', async () => {
    const filler = (length: number) => ({ 'X-Filler': 'x'.repeat(length) });
    const length = { 'Content-Length': '0' };
    const long = at(KEY.replace('name', 'long'), capabilityOf(KEY.replace('name', 'long')));
    const taken = await sendRaw(relay.port, 'PUT', long, { ...length, ...filler(23_000) });
    expect(taken.status).toBe(200);
    for (const [method, target, size] of [
      ['PUT', uploadTarget(KEY), 24_600],
      ['GET', '/emojis/9.png', 17_000],
      ['OPTIONS', uploadTarget(KEY), 17_000],
    ] as const) {
      expect((await sendRaw(relay.port, method, target, filler(size))).status).toBe(431);
    }
  });

  test('a capability of 16 384 characters, which is let in', async () => {
    const target = at(KEY, ofLength(16_380));
    expect((await sendRaw(relay.port, 'PUT', target, { 'Content-Length': '0' })).status).toBe(200);
  });
});

describe('an upload that is cut off leaves nothing, with', () => {
  const chunked = { 'Transfer-Encoding': 'chunked' };
  const piece = `${(60_000).toString(16)}\r\n${'x'.repeat(60_000)}\r\n`;

  test.each([
    [
      'more in chunks than the service allows',
      'attachments/9/1/a',
      {},
      piece.repeat(20),
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'more in chunks than its capability allows',
      'attachments/9/1/a',
      { maxBytes: 9 },
      'a\r\n0123456789\r\n0\r\n\r\n',
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'a text that is said to be a picture',
      'attachments/9/1/a',
      { contentType: 'image/png' },
      '5\r\nhello\r\n0\r\n\r\n',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'nothing that is said to be a picture',
      'attachments/9/1/a',
      { contentType: 'IMAGE/AVIF' },
      '0\r\n\r\n',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['chunks that are none', 'attachments/9/1/a', {}, '5\r\nhelloxx', 400, 'INVALID_FORM_BODY'],
    [
      'chunks that turn into none',
      'attachments/9/1/a',
      {},
      `${piece}zz\r\n`,
      400,
      'INVALID_FORM_BODY',
    ],
  ])('%s', async (_, key, terms, body, status, code) => {
    const target = uploadTarget(key, terms);
    const before = await relay.list();
    const answer = await sendRaw(relay.port, 'PUT', target, chunked, body);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code });
    await expect.poll(relay.list).toEqual(before);
  });

  test.each(['image/svg+xml', 'image/x-icon', 'text/html', 'image/pngx', ''])(
    'no look at bytes that are said to be %s',
    async (type) => {
      const target = uploadTarget(`attachments/9/2/${type.length}${type.slice(-3)}`);
      const headers = { 'Content-Type': type, 'Content-Length': '5' };
      expect((await sendRaw(relay.port, 'PUT', target, headers, 'hello')).status).toBe(200);
    },
  );

  test.each(
    Object.entries(samples).filter(([name]) =>
      ['jpeg', 'png', 'webp', 'animatedGif'].includes(name),
    ),
  )('no refusal of a picture whatever picture it is said to be: %s', async (name, bytes) => {
    const target = uploadTarget(`attachments/9/3/${name}`, { contentType: 'image/heic; x=y' });
    const headers = { 'Content-Length': String(bytes.length) };
    const body = bytes.toString('latin1');
    expect((await sendRaw(relay.port, 'PUT', target, headers, body)).status).toBe(200);
    expect((await relay.read(`attachments/9/3/${name}`)).equals(bytes)).toBe(true);
  });
});
