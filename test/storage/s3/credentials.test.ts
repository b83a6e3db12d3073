import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { cdnSettings } from '../../support/cdn/cdn-app.ts';
import { startCdnApi } from '../../support/cdn/cdn-server.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { openStream, signal } from '../../support/open-stream.ts';
import {
  type CredentialSource,
  type Silence,
  useCredentialServer,
} from '../../support/s3/credential-server.ts';
import { LOCAL_CREDENTIALS, useLocalS3 } from '../../support/s3/local-s3.ts';
import {
  openBucketObjects,
  openBucketOrigin,
  openBucketStore,
  openBucketWriter,
} from '../../support/s3/s3-bucket.ts';
import { respondWithError, useScriptedS3 } from '../../support/s3/scripted-s3.ts';
import {
  metricsSettings,
  sendToAdmin,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { createTestApp, samples } from '../../support/test-app.ts';

const KEY = 'avatars/1/ab12';
const s3 = await useLocalS3();
await s3.put(KEY, samples.png);

test.each<[source: CredentialSource, silence: Silence, times: number]>([
  ['container', 'no response', 1],
  ['container', 'half a body', 1],
  ['web identity', 'no response', 1],
  ['web identity', 'half a body', 1],
  ['instance', 'no response', 1],
])(
  'an S3 client sends a new request when the %s endpoint falls silent (%s)',
  async (source, silence, times) => {
    const endpoint = await useCredentialServer(source);
    const origin = openBucketOrigin(s3);
    endpoint.silence(silence, times);
    const read = async () => buffer((await openStream(origin, KEY)).body);
    const bytes = await read().catch(read);
    expect(bytes.equals(samples.png)).toBe(true);
    expect(endpoint.requests()).toBeGreaterThan(times);
    // The silent requests have been aborted.
    await expect.poll(endpoint.open).toBe(0);
  },
);

test('every client of AWS recovers from a silent credentials endpoint', async () => {
  const endpoint = await useCredentialServer('container');
  vi.stubEnv('AWS_REGION', 'us-east-1');
  const cdn = await startCdnApi('cloudfront');
  const objects = new MemoryObjects();
  const address = { originKey: KEY, cacheKey: KEY, originalEtag: 'a', release: '1' };
  const uses: readonly (() => Promise<unknown>)[] = [
    () => openStream(openBucketOrigin(s3), KEY),
    () => openBucketWriter(s3).has(KEY, signal),
    () => openBucketStore(s3).read(address, signal, () => undefined),
    () => openBucketObjects(s3).read('list'),
    async () => {
      const app = await createTestApp({ settings: cdnSettings('cloudfront', cdn), objects });
      onTestFinished(app.close);
      expect((await sendToAdmin(app, '/purge', { assets: ['icons/1/ab'] })).statusCode).toBe(202);
      // The CDN rejects these keys; its response shows that the request was signed.
      await expect.poll(() => cdn.statuses).toEqual([403]);
    },
  ];
  endpoint.silence('no response', uses.length);
  await Promise.all(uses.map((use) => use()));
  expect(endpoint.requests()).toBe(2 * uses.length);
});

test('a credential process that hangs is run again after a minute', async () => {
  await useCredentialServer('container');
  const directory = await useTemporaryDirectory();
  const { AWS_ACCESS_KEY_ID: AccessKeyId, AWS_SECRET_ACCESS_KEY: SecretAccessKey } =
    LOCAL_CREDENTIALS;
  const keys = { Version: 1, AccessKeyId, SecretAccessKey };
  await directory.put('keys', JSON.stringify(keys));
  await directory.put(
    'run.sh',
    'if mkdir hanging; then echo $$ > pid; exec sleep 1000; fi; cat keys',
  );
  await directory.put(
    'config',
    `[default]\ncredential_process = sh -c "cd ${directory.path} && . ./run.sh"\n`,
  );
  vi.stubEnv('AWS_CONFIG_FILE', join(directory.path, 'config'));
  const origin = openBucketOrigin(s3);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const first = origin.open(KEY, { signal });
  const readPid = () => Number(readFileSync(join(directory.path, 'pid'), 'utf8'));
  await expect.poll(readPid).toBeGreaterThan(0);
  onTestFinished(() => void process.kill(readPid()));
  vi.advanceTimersByTime(60_000);
  const cause = { message: 'No credentials within 60000 ms.' };
  await expect(first).rejects.toMatchObject({ code: 'ORIGIN_ERROR', cause });
  expect((await buffer((await openStream(origin, KEY)).body)).equals(samples.png)).toBe(true);
});

test('readiness reports a silent credentials endpoint, and reads resume without a restart', async () => {
  const endpoint = await useCredentialServer('container', 400);
  const { clock, get, requestAdmin } = await createTestApp({
    origin: openBucketOrigin(s3),
    settings: { ...metricsSettings, ORIGIN_FIRST_BYTE_TIMEOUT_MS: '500' },
  });
  let key = 0;
  /** Reads an uncached original some time after the last one. */
  const observe = async () => {
    clock.advance(11_000);
    key += 1;
    const { statusCode } = await get(`/avatars/1/ab${key}.webp?size=16`);
    const { reasons } = (await requestAdmin('/readyz', { headers: withToken })).json();
    return [statusCode, reasons.includes('the origin fails; cached media are served')];
  };
  await expect.poll(observe).toEqual([404, false]);
  endpoint.silence('no response');
  await expect.poll(observe).toEqual([504, true]);
  endpoint.speak();
  await expect.poll(observe).toEqual([404, false]);
});

test('an error of S3 is reported without its text when the credentials in it cannot be redacted', async () => {
  await useCredentialServer('container', 300);
  const { endpoint } = await useScriptedS3((_, response) => {
    // Meanwhile the credentials expire.
    setTimeout(() => {
      vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', '');
      vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
      respondWithError(response, 403, 'AccessDenied');
    }, 400);
  });
  const reading = openBucketOrigin({ endpoint, bucket: 'originals' }).open(KEY, { signal });
  const cause = { message: 'AccessDenied (HTTP 403, attempts: 1): ' };
  await expect(reading).rejects.toMatchObject({ code: 'ORIGIN_ERROR', cause });
});
