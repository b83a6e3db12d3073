import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { patient } from '../support/patient.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';

const { endpoint, accessKeyId, secretAccessKey, credentials } = rgw;

const settings = {
  STORAGE: 's3',
  S3_BUCKET: 'service',
  S3_ENDPOINT: endpoint,
  AWS_EC2_METADATA_DISABLED: 'true',
  ...credentials,
  ...patient,
};

beforeAll(() => createRgwBucket('service'));

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
    for (const path of ['/avatars/1/ab12.webp', '/attachments/1/14/romeo.txt']) {
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
