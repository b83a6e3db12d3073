import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sendRaw } from '../../support/http/raw-http.ts';
import { OpenapiReader } from '../../support/openapi/openapi-reader.ts';
import { samples } from '../../support/test-app.ts';
import {
  capabilityOf,
  type RelayApp,
  startRelayApp,
  uploadTarget,
} from '../../support/uploads/relay-app.ts';

/** Uploads are not made from the document, since a capability is signed; their responses are compared with it. */
const reader = new OpenapiReader('docs/openapi.json');
const uploads = reader.operations('uploads');

const KEY = 'attachments/1/2/cat picture.bin';
const TAKEN = 'emojis/9';
const png = { contentType: 'image/png' };
const part = { part: { uploadId: '2~abc', partNumber: 7 } };

let relay: RelayApp;
beforeAll(async () => {
  relay = await startRelayApp({ settings: { RELAY_MAX_BYTES: '1000' } });
  await relay.put(TAKEN, samples.png);
});
afterAll(() => relay?.close());

interface Row {
  readonly name: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
}

const rows: readonly Row[] = [
  { name: 'a new object', target: uploadTarget(KEY), body: 'abc', status: 200 },
  {
    name: 'an object that is replaced',
    target: uploadTarget(TAKEN, { replaces: true }),
    status: 200,
  },
  { name: 'a key of no original', target: uploadTarget('backups/database'), status: 400 },
  { name: 'no capability', target: `/v1/relay/${TAKEN}`, status: 401 },
  {
    name: 'a part into a folder',
    target: `${uploadTarget(TAKEN, part)}&uploadId=2~abc&partNumber=7`,
    status: 403,
  },
  { name: 'an object that is there', target: uploadTarget(TAKEN), status: 409 },
  {
    name: 'too many bytes',
    target: uploadTarget('emojis/1', { maxBytes: 2 }),
    body: 'abc',
    status: 413,
  },
  { name: 'text for an image', target: uploadTarget('emojis/1', png), body: 'abc', status: 415 },
  {
    name: 'a long head',
    target: uploadTarget('emojis/1'),
    headers: { 'X-Long': 'x'.repeat(25_000) },
    status: 431,
  },
];

describe('uploads are as the OpenAPI document says:', () => {
  test('the document has them', () => {
    expect(uploads.map(({ method }) => method)).toEqual(['OPTIONS', 'PUT']);
    const [, put] = uploads;
    const schema = put?.parameters.find(({ name }) => name === 't')?.schema;
    if (schema === undefined) return expect.fail('there is no capability');
    const capability = capabilityOf(KEY);
    expect(reader.isValidText(schema, capability)).toBe(true);
    for (const wrong of ['', `${capability}=`, `${capability}.`, capability.replace('.', '')]) {
      expect(reader.isValidText(schema, wrong), wrong).toBe(false);
    }
  });

  test.each(rows)('$name: $status', async ({ target, headers, body = '', status }) => {
    const put = uploads.find(({ method }) => method === 'PUT');
    if (put === undefined) return expect.fail('there is no upload');
    const length = { 'Content-Length': String(body.length) };
    const response = await sendRaw(relay.port, 'PUT', target, { ...length, ...headers }, body);
    expect(response.status).toBe(status);
    expect(reader.findDeviations(put, response)).toEqual([]);
  });

  test('a preflight', async () => {
    const preflight = uploads.find(({ method }) => method === 'OPTIONS');
    if (preflight === undefined) return expect.fail('there is no preflight');
    const asked = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'PUT' };
    const response = await sendRaw(relay.port, 'OPTIONS', uploadTarget(KEY), asked);
    expect(response.status).toBe(204);
    expect(reader.findDeviations(preflight, response)).toEqual([]);
  });
});
