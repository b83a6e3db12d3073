import { beforeEach, describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { formatExternalPath } from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { createRedaction, describeTarget } from '../../../src/telemetry/redaction.ts';
import { enforced, SIGNING_KEY, signedPath } from '../../support/signed-urls.ts';
import {
  type OtlpReceiver,
  useOtlpReceiver,
  useTracing,
} from '../../support/telemetry/otlp-receiver.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const key = 'attachments/1/2/photo.png';
const signed = signedPath(key, Math.floor(Date.now() / 1000) + 3_600);
const hm = /hm=(\w+)$/.exec(signed)?.[1] ?? '';
const capability = `${Buffer.from('{"k":"attachments/1/2/a","m":"put","e":1}').toString('base64url')}.${'c'.repeat(43)}`;
const external = formatExternalPath('https://host.invalid/cat.png', new SigningKeys([SIGNING_KEY]));
const [, , signature = ''] = external.split('/');

let app: TestApp;
let collector: OtlpReceiver;

beforeEach(async () => {
  collector = await useOtlpReceiver();
  const settings = useTracing(collector, {
    ...enforced,
    EXTERNAL_SIGNING_KEYS: SIGNING_KEY,
    EXTERNAL_DNS_SERVERS: '127.0.0.1:1',
  });
  app = await useTestApp({ settings, logged: 'debug' });
  app.originals.put(key, samples.png);
});

const targets: readonly (readonly [string, string, string])[] = [
  ['GET', signed, 'attachments/1/2/photo.png'],
  ['GET', `${signed}&width=20`, 'attachments/1/2/photo.png'],
  ['GET', `${signed}&hm=${hm}`, 'attachments/1/2/photo.png'],
  ['GET', `${signed}&width=0`, '/attachments/1/2/photo.png?'],
  ['GET', signed.replace('&hm=', '&h%6d=').replace('/1/', '/x/'), '/attachments/x/2/photo.png?'],
  ['POST', signed, '/attachments/1/2/photo.png?'],
  ['GET', `/nothing/of?a=1&hm=${hm}`, '/nothing/of?a=1&hm=[redacted]'],
  ['GET', `http://cdn.example${signed}&width=0`, 'http://cdn.example/attachments/1/2/photo.png?'],
  ['GET', external, 'external/'],
  ['GET', `${external}?width=0`, '/external/[redacted]/v2/'],
  ['PUT', external, '/external/[redacted]/v2/'],
  ['PUT', `/v1/relay/attachments/1/2/a?t=${capability}`, '/v1/relay/attachments/1/2/a'],
  ['GET', `/v1/relay/attachments/1/2/a?x=1&%74=${capability}`, '/v1/relay/attachments/1/2/a'],
];

describe('log, traces and error texts have no permission in them', () => {
  test.each(targets)('%s %s', async (method, target, shown) => {
    const { body } = await app.send(method, target);
    await expect.poll(() => app.requests.length, { timeout: 5_000 }).toBe(1);
    const server = () => collector.spans.find(({ kind }) => kind === 2);
    await expect.poll(server, { timeout: 5_000 }).toBeDefined();
    expect(app.requests[0]?.asset).toContain(shown);
    const seen = JSON.stringify([app.requests, app.log.entries, collector.spans]);
    for (const secret of [hm, capability, capability.slice(-43), signature]) {
      expect(seen).not.toContain(secret);
      expect(body.toString('latin1')).not.toContain(secret);
    }
  });

  test('nor has the log of a storage that fails', async () => {
    app.originals.failure = new MediaError('ORIGIN_ERROR', { cause: new Error('unplugged') });
    const before = app.log.entries.length;
    expect((await app.send('GET', signed)).status).toBe(502);
    const entries = app.log.entries.slice(before);
    expect(entries.length).toBeGreaterThan(0);
    expect(JSON.stringify(entries)).toContain('/attachments/1/2/photo.png?');
    expect(JSON.stringify(entries)).not.toContain(hm);
  });
});

describe('a target', () => {
  test.each([
    ['/a?v=1&size=16', '/a?v=1&size=16'],
    ['/a?', '/a?'],
    ['/a?hm', '/a?hm=[redacted]'],
    ['/a?HM=1&that=2&t2=3', '/a?HM=1&that=2&t2=3'],
    ['/a??hm=1', '/a??hm=1'],
    ['/a?t=1?2&hm=%zz&x=%', '/a?t=[redacted]&hm=[redacted]&x=%'],
    ['/external/abc', '/external/[redacted]'],
    ['/external//v2/abc', '/external//v2/abc'],
  ])('%s is shown as %s', (target, shown) => {
    expect(describeTarget(target)).toBe(shown);
  });

  test('is cut only once nothing in it permits any more', () => {
    const path = `/a?${'x'.repeat(190)}&hm=${hm}`;
    expect(describeTarget(path)).not.toContain(hm.slice(0, 4));
    expect(describeTarget(path)).toHaveLength(201);
  });
});

test('what is written elsewhere goes through the redaction', () => {
  const redact = createRedaction([]);
  const line = JSON.stringify({
    msg: `failed: ${signed} /v1/relay/a?t=${capability}&b=1 ${external}`,
  });
  for (const secret of [hm, capability, signature]) expect(redact(line)).not.toContain(secret);
  expect(redact(line)).toContain('/v1/relay/a?t=[redacted]&b=1 /external/[redacted]/v2/');
});
