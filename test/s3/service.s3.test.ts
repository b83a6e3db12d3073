import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { patient } from '../support/patient.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';

const ORIGINALS = 'fixtures/originals';
const PREFIX = 'media/';

const { endpoint, accessKeyId, secretAccessKey, credentials } = rgw;

const settings = {
  STORAGE: 's3',
  S3_BUCKET: 'service',
  S3_ENDPOINT: endpoint,
  S3_PREFIX: PREFIX,
  AWS_EC2_METADATA_DISABLED: 'true',
  ...credentials,
  ...patient,
};

let fromS3: ServiceProcess;
let fromFolder: ServiceProcess;

beforeAll(async () => {
  const bucket = await createRgwBucket('service');
  const files = readdirSync(ORIGINALS, { recursive: true, withFileTypes: true });
  for (const file of files.filter((entry) => entry.isFile())) {
    const key = join(file.parentPath, file.name).slice(ORIGINALS.length + 1);
    await bucket.put(PREFIX + key, readFileSync(join(ORIGINALS, key)));
  }
  [fromS3, fromFolder] = await Promise.all([
    startService(settings),
    startService({ STORAGE_DIR: ORIGINALS, ...patient }),
  ]);
});
afterAll(async () => {
  await Promise.all([fromS3?.stop(), fromFolder?.stop()]);
});

const attachment = (path: string): string =>
  `/attachments/${path.split('/').map(encodeURIComponent).join('/')}`;
const romeo = attachment('1/14/romeo.txt');
const ask = (path: string, options: RequestInit = {}): Promise<Response> =>
  fetch(fromS3.origin + path, options);

describe('the service on Ceph RGW', () => {
  test.each([
    '/avatars/1/ab12.webp?size=256',
    '/avatars/1/ab12.jpg?size=20&quality=low',
    '/avatars/2/a_cd34.gif?size=64',
    '/avatars/2/a_cd34.webp?size=64&animated=true',
    '/icons/1/ab12.png',
    '/splashes/1/ab12.webp?quality=lossless&size=512',
    '/emojis/1473333333333333334.gif?size=64',
    '/stickers/1474444444444444445.webp',
    `${attachment('1475555555555555556/1476666666666666667/my photo é.png')}?width=400&format=webp`,
    `${attachment('1/11/caps.avif')}?width=50`,
    attachment('1/1/country-lane.jpg'),
    attachment('1/10/draft #1 %20 cats & dogs.png'),
    romeo,
  ])('responds to %s as it does from a folder', async (path) => {
    const expected = await fetch(fromFolder.origin + path);
    const response = await ask(path);
    expect(response.status).toBe(200);
    for (const name of ['content-type', 'content-length', 'cache-control', 'content-disposition']) {
      expect(response.headers.get(name), name).toBe(expected.headers.get(name));
    }
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.equals(Buffer.from(await expected.arrayBuffer()))).toBe(true);
    expect(bytes.length).toBeGreaterThan(0);

    const etag = response.headers.get('etag') ?? '';
    const again = await ask(path, { headers: { 'if-none-match': etag } });
    expect(again.status).toBe(304);
    const head = await ask(path, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(head.headers.get('content-length')).toBe(String(bytes.length));
    expect(head.headers.get('etag')).toBe(etag);
  });

  test('stores a rendering', async () => {
    const path = '/avatars/1/ab12.webp?size=32';
    expect((await ask(path)).headers.get('cache-status')).toContain('fwd=miss');
    expect((await ask(path)).headers.get('cache-status')).toContain('hit');
  });

  test('logs no failure', () => {
    const failures = fromS3
      .output()
      .split('\n')
      .filter((line) => /"level":(40|50|60)/.test(line))
      // The SDK's, of Node 20.
      .filter((line) => !line.includes('NodeVersionSupportWarning'));
    expect(failures).toEqual([]);
  });
});

describe('a service with a wrong setting of S3', () => {
  let service: ServiceProcess | undefined;
  afterEach(() => service?.stop());

  test.each([
    ['a wrong secret', { AWS_SECRET_ACCESS_KEY: 'wrong-secret' }, 'SignatureDoesNotMatch'],
    ['an unknown user', { AWS_ACCESS_KEY_ID: 'UNKNOWN-USER' }, 'InvalidAccessKeyId'],
    ['no credentials', { AWS_ACCESS_KEY_ID: '' }, 'CredentialsProviderError'],
    ['a missing bucket', { S3_BUCKET: 'missing' }, 'NoSuchBucket'],
    ['a name that is not known', { S3_ENDPOINT: 'http://s3.invalid' }, 'ENOTFOUND'],
    ['TLS where there is none', { S3_ENDPOINT: endpoint.replace('http', 'https') }, 'EPROTO'],
    ['a port where nothing listens', { S3_ENDPOINT: 'http://127.0.0.1:1' }, 'ECONNREFUSED'],
  ])('with %s responds with 502, and its log says why', async (_, wrong, cause) => {
    const environment: Record<string, string> = { ...settings, ...wrong };
    service = await startService(environment);
    for (const path of ['/avatars/1/ab12.webp', romeo, '/avatars/1/nothing.webp']) {
      const response = await fetch(service.origin + path);
      expect(response.status).toBe(502);
      expect(await response.json()).toEqual({
        code: 'ORIGIN_ERROR',
        message: 'The origin has failed.',
      });
    }
    expect((await fetch(`${service.origin}/avatars/0.png`)).status).toBe(200);
    await expect.poll(service.output).toContain(cause);
    for (const secret of [secretAccessKey, accessKeyId, 'wrong-secret', 'UNKNOWN-USER']) {
      expect(service.output()).not.toContain(secret);
    }
  });
});
