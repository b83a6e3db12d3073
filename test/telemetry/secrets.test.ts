import { spawn } from 'node:child_process';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { externalKeyOf } from '../../src/contract/signing/external-path.ts';
import { type ServiceProcess, useService } from '../support/processes/service-process.ts';
import { enforced, SIGNING_KEY, signedPath } from '../support/signed-urls.ts';
import { signedPathOf } from '../support/sites/external-app.ts';
import { useOtlpReceiver } from '../support/telemetry/otlp-receiver.ts';
import { withToken } from '../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { samples } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';
import { uploadTarget } from '../support/uploads/relay-app.ts';
import { useObservedApp } from './observed-app.ts';

const key = 'attachments/1/2/photo.png';
const signed = signedPath(key, Math.floor(Date.now() / 1000) + 3_600);
const [signature = '', hm = ''] = /&hm=(\w+)$/.exec(signed) ?? [];
const upload = uploadTarget('attachments/1/2/a');
const capability = upload.slice(upload.indexOf('t=') + 2);
const EVIL_URL = 'https://evil.test/cat.png';
const external = signedPathOf(EVIL_URL);
const [, , sealed = ''] = external.split('/');
/** A local attachment as external media. */
const wrapped = signedPathOf(`https://cdn.example${signed}`);
/** Targets are redacted before they are truncated. */
const long = `/a?${'x'.repeat(190)}`;
const shownSigned = `/${key}?${signed.slice(signed.indexOf('?') + 1).replace(hm, '[redacted]')}`;
const shownExternal = external.replace(sealed, '[redacted]');
const plain = 'width=&height=&format=&quality=lossless&animated=false';
const asset = `${key}?${plain}`;

/** Requests with credentials, and their form in the log. */
const targets = `
GET ${signed} ${asset}
GET ${signed}&width=20 ${asset.replace('width=', 'width=20')}
GET ${signed}${signature} ${asset}
GET ${signed}&width=0 ${shownSigned}&width=0
GET ${signed.replace('&hm=', '&h%6d=').replace('/1/', '/x/')} ${shownSigned.replace('/1/', '/x/')}
POST ${signed} ${shownSigned}
GET /nothing/of?a=1&hm=${hm} /nothing/of?a=1&hm=[redacted]
GET http://cdn.example${signed}&width=0 http://cdn.example${shownSigned}&width=0
GET ${external} ${externalKeyOf(EVIL_URL)}?${plain}
GET ${external}?width=0 ${shownExternal}?width=0
PUT ${external} ${shownExternal}
PUT ${upload} /v1/relay/attachments/1/2/a
GET /v1/relay/attachments/1/2/a?x=1&%74=${capability} /v1/relay/attachments/1/2/a?x=1&t=[redacted]
GET ${long}&hm=${hm} ${long}&hm=[re…
GET /a?hm /a?hm=[redacted]
GET /a?HM=1&that=2&t2=3 /a?HM=1&that=2&t2=3
GET /a?t=1?2&hm=%zz&x=% /a?t=[redacted]&hm=[redacted]&x=%
GET /external/abc /external/[redacted]
PUT ${wrapped} /external/[redacted]/v2/[redacted]
PUT /external/a/%3Fex%3D1%26hm%3D${hm}/https/a.example /external/[redacted]/%3Fex%3D1%26hm%3D[redacted]/https/a.example
PUT /external/a/%253Fhm%253D${hm}/https/a.example /external/[redacted]/%253Fhm%253D[redacted]/https/a.example
`;

describe('log, metrics, spans and responses contain no signature or capability', () => {
  test('for any target', async () => {
    const app = await useObservedApp({ settings: enforced });
    app.originals.put(key, samples.png);
    for (const row of targets.trim().split('\n')) {
      const [method = '', target = '', shown] = row.split(' ');
      app.requests.length = 0;
      app.collector.spans.length = 0;
      const fields = method === 'PUT' ? { 'Content-Length': '0' } : {};
      const response = await app.send(method, target, fields);
      await expect.poll(() => app.requests).toHaveLength(1);
      await expect.poll(() => app.collector.spans.some(({ kind }) => kind === 2)).toBe(true);
      expect(app.requests[0]?.asset).toBe(shown);
      const { body } = await app.requestAdmin('/metrics', { headers: withToken });
      const parts = [app.requests, app.log.entries, app.collector.spans, response.headers, body];
      const seen = JSON.stringify([...parts, response.body.toString('latin1')]);
      for (const secret of [hm, capability, capability.slice(-43), sealed]) {
        expect(seen, target).not.toContain(secret);
      }
    }
  });

  test('for a failing storage', async () => {
    const app = await useObservedApp({ settings: enforced });
    app.originals.failure = new MediaError('ORIGIN_ERROR', { cause: new Error('unplugged') });
    expect((await app.send('GET', signed)).status).toBe(502);
    const [entry] = app.log.entries.filter(({ message }) => message === 'a request failed');
    expect(entry?.details).toMatchObject({ url: shownSigned });
    expect(JSON.stringify(app.log.entries)).not.toContain(hm);
  });
});

const TOKEN = 'token-of-the-administrator';
const INTERNAL = 'token-of-the-platform';
const SESSION = 'one "with quotes"';
const AWS_SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const HUSH = 'hush-hush-hush';

/** Texts that look like credentials, and their redacted form. */
const words = `
a ${AWS_SECRET} b ${AWS_SECRET} → a [redacted] b [redacted]
https://s3/k?X-Amz-Signature=ab12&x-id=GetObject → https://s3/k?X-Amz-Signature=[redacted]&x-id=GetObject
?x-amz-security-token=a%2Fb end → ?x-amz-security-token=[redacted] end
?X-Goog-Credential=a1&X-Goog-Signature=b1 → ?X-Goog-Credential=[redacted]&X-Goog-Signature=[redacted]
?Policy=a2&Signature=b2&Key-Pair-Id=c2 → ?Policy=[redacted]&Signature=[redacted]&Key-Pair-Id=[redacted]
?ex=1&is=2&hm=abc9 → ?ex=1&is=2&hm=[redacted]
Credential=AK/1/s3, SignedHeaders=host, Signature=ff9 → Credential=[redacted], SignedHeaders=host, Signature=[redacted]
Authorization: Basic dXNlcjpwYXNz → Authorization: [redacted]
the answer to Bearer abcdefgh1 was → the answer to Bearer [redacted] was
/v1/relay/a?t=${capability}&b=1 → /v1/relay/a?t=[redacted]&b=1
${external} → ${shownExternal}
of ${SESSION} too → of [redacted] too
a monkey=x design=a bearer of news → a monkey=x design=a bearer of news`;
/** Returns one column of these rows as one text. */
const wordsAt = (side: 0 | 1): string =>
  words
    .trim()
    .split('\n')
    .map((row) => row.split(' → ')[side])
    .join(' | ');
// Redaction takes linear time.
const hostile = [
  'token='.repeat(15_000),
  'authorization:'.repeat(5_000),
  '\\"signature=\\"'.repeat(5_000),
];

const traced = (url: string, sampler: string) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  VIDEO_DECODER: 'off',
  OTEL_TRACES_SAMPLER: sampler, // a word that the SDK does not know is quoted in the log
});

const linesOf = ({ output }: ServiceProcess) =>
  (output().match(/^\{.*$/gm) ?? []).map((line) => JSON.parse(line));

test('the log of the process contains no secret', async () => {
  const { url } = await useOtlpReceiver();
  const service = await useService({
    ...traced(url, wordsAt(0)),
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${HUSH}`,
    ADMIN_PORT: '0',
    ADMIN_TOKEN: TOKEN,
    INTERNAL_PORT: '0',
    INTERNAL_TOKEN: INTERNAL,
    AWS_SECRET_ACCESS_KEY: AWS_SECRET,
    AWS_SESSION_TOKEN: SESSION,
    RELAY_SIGNING_KEYS: SIGNING_KEY,
  });
  for (const secret of [TOKEN, INTERNAL, HUSH, SIGNING_KEY, AWS_SECRET]) {
    await (await fetch(`${service.origin}/x/${secret}`)).arrayBuffer();
  }
  expect(await service.stop()).toBe(0);
  const output = service.output();
  const lines = linesOf(service);
  const { reason } = lines.find(({ reason }) => /monkey/.test(reason));
  expect(reason).toContain(wordsAt(1));
  for (const secret of [TOKEN, INTERNAL, AWS_SECRET, HUSH, SIGNING_KEY]) {
    expect(output).not.toContain(secret);
  }
  expect(output.match(/"asset":"\/x\/\[redacted\]"/g)).toHaveLength(5);
  expect(lines.slice(-2)).toMatchObject([{ msg: 'stopping' }, { msg: 'stopped', status: 0 }]);
});

test.each(atScale(hostile.slice(0, 1), hostile))(
  'redacts a hostile line in linear time, and keeps it JSON (%#)',
  async (text) => {
    const { url } = await useOtlpReceiver();
    const startMs = performance.now();
    const service = await useService(traced(url, text));
    expect(performance.now() - startMs).toBeLessThan(15_000); // quadratic time would be minutes
    await service.stop('SIGKILL');
    expect(linesOf(service).map(({ reason }) => reason)).toContainEqual(
      expect.stringContaining('OTEL_TRACES_SAMPLER'),
    );
  },
);

test('formats lines for people at a terminal, and masks control characters', async () => {
  const { url } = await useOtlpReceiver();
  const { path, put } = await useTemporaryDirectory();
  await put('originals/icons/1/ab', samples.jpeg);
  const orders = '\u001b[2J\u009b1m\u007f\b\\u001b';
  const child = spawn('script', ['-qec', `"${process.execPath}" dist/main.js`, '/dev/null'], {
    env: {
      ...traced(url, orders),
      PATH: process.env.PATH,
      PORT: '0',
      WORKERS: '1',
      EXPLORER: 'off',
      STORAGE_DIR: join(path, 'originals'),
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  onTestFinished(() => void child.kill());
  let raw = '';
  child.stdout.on('data', (chunk: Buffer) => {
    raw += chunk.toString();
  });
  const read = (): string => stripVTControlCharacters(raw).replaceAll('\r\n', '\n');
  const originOf = () => /Darkroom listens on (http:\S+)/.exec(read())?.[1];
  await expect.poll(originOf).toBeDefined();
  expect((await fetch(`${originOf()}/icons/1/ab.webp?size=16`)).status).toBe(200);
  await rename(join(path, 'originals'), join(path, 'away'));
  expect((await fetch(`${originOf()}/icons/1/none.webp?size=16`)).status).toBe(502);
  await expect.poll(read).toMatch(/^\[\d\d:\d\d:\d\d\] ERROR: a request failed/m);
  expect(read()).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: request \{.*"resource":"guild icon"/m);
  // With each cause's stack, once.
  expect(read()).toMatch(/MediaError: The origin has failed\.\n +at /);
  expect(read()).toMatch(/caused by: Error: ENOENT/);
  expect(read().match(/MediaError: The origin has failed/g)).toHaveLength(1);
  expect(read()).toContain('?[2J?1m??\\u001b');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for control characters
  expect(raw.replaceAll(/\u001b\[\d+m/g, '')).not.toMatch(/[^\P{Cc}\r\n]/u);
});
