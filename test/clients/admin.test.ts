import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest';
import { AdminClient, AdminError, type Metadata } from '../../src/client/admin.ts';
import type { MediaMetadata } from '../../src/contract/metadata.ts';
import { metricsSettings, METRICS_TOKEN as token } from '../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { samples, useTestApp } from '../support/test-app.ts';

async function start(settings: Readonly<Record<string, string>> = {}) {
  const app = await useTestApp({ settings: { ...metricsSettings, ...settings } });
  const adminUrl = (await app.admin?.listen({ host: '127.0.0.1', port: 0 })) ?? expect.fail();
  return { app, adminUrl, client: new AdminClient({ adminUrl, token }) };
}

const failureOf = (work: Promise<unknown>): Promise<AdminError> =>
  work.then(
    () => expect.fail('the request succeeded'),
    (error: unknown) => (error instanceof AdminError ? error : expect.fail(String(error))),
  );

describe('the admin client', () => {
  test('purges what each member of a request names', async () => {
    const { client } = await start({ PUBLIC_URLS: 'https://cdn.example.com' });
    for (const request of [
      { paths: ['/avatars/1/ab12.webp?size=80'] },
      { assets: ['avatars/1/ab12'] },
      { prefix: 'avatars/1/' },
      { external: ['https://media.example.org/cat.png'] },
      { prefixes: ['cdn.example.com/avatars/1/ab12'] },
    ]) {
      expect(await client.purge(request)).toEqual({ removed: { memory: 0, store: 0 } });
    }
  });

  test('reports the faults of a request', async () => {
    const { client } = await start();
    const error = await failureOf(client.purge({ assets: ['nonsense', 'avatars/1/ab12'] }));
    expect(error).toMatchObject({
      status: 400,
      code: 'INVALID_FORM_BODY',
      faults: [{ path: 'assets.0', message: expect.stringMatching(/^Expected an origin key/) }],
    });
    expect(error.message).toMatch(
      /^400 INVALID_FORM_BODY: The request is not valid\. assets\.0: Expected an origin key/,
    );
  });

  test('blocks and unblocks originals', async () => {
    const directory = await useTemporaryDirectory();
    const { app, client } = await start({
      BLOCKLIST: 'filesystem',
      BLOCKLIST_FILE: join(directory.path, 'blocks.jsonl'),
    });
    app.originals.put('avatars/1/ab12', samples.jpeg);
    const status = async () => (await app.get('/avatars/1/ab12.webp?size=16')).statusCode;
    expect(await status()).toBe(200);
    const { generation } = await client.block({ keys: ['avatars/1/ab12'] }, { note: 'a test' });
    expect(await status()).toBe(451);
    await client.block({ keys: ['avatars/1/ab12'] }, { hidden: true });
    expect(await status()).toBe(404);
    const unblocked = await client.unblock({ keys: ['avatars/1/ab12'] });
    expect(unblocked.generation).toBeGreaterThan(generation);
    expect(await status()).toBe(200);
  });

  test('names the setting that blocking requires', async () => {
    const { client } = await start();
    const error = await failureOf(client.block({ keys: ['avatars/1/ab12'] }));
    expect(error).toMatchObject({ status: 404, code: 'NOT_FOUND' });
    expect(error.message).toContain('set BLOCKLIST');
  });

  test('returns the metadata of an original', async () => {
    expectTypeOf<Metadata>().toEqualTypeOf<Readonly<MediaMetadata>>();
    const { app, client } = await start();
    app.originals.put('attachments/1/2/what? 100%.jpg', samples.jpeg);
    const metadata = await client.metadata('attachments/1/2/what? 100%.jpg', { sha256: true });
    expect(metadata).toMatchObject({
      key: 'attachments/1/2/what? 100%.jpg',
      content_type: 'image/jpeg',
      kind: 'image',
      sha256: expect.stringMatching(/^[\da-f]{64}$/),
      placeholder: expect.any(String),
    });
    const plain = await client.metadata('attachments/1/2/what? 100%.jpg', { placeholder: false });
    expect(plain.sha256).toBeNull();
    const missing = await failureOf(client.metadata('attachments/1/2/none.jpg'));
    expect(missing).toMatchObject({ status: 404, code: 'UNKNOWN_MEDIA' });
    await expect(client.metadata('a//b')).rejects.toThrow('key is "a//b"; expected segments');
  });

  test('returns whether the service is ready, and why not', async () => {
    const { adminUrl } = await start();
    // The path needs no token.
    const client = new AdminClient({ adminUrl, token: 'another' });
    // Workers start with the first render.
    expect(await client.readiness()).toMatchObject({
      status: 'not ready',
      reasons: ['no worker is ready', 'no worker for heavy renders is ready'],
      version: expect.any(String),
    });
  });

  test('reports a wrong token', async () => {
    const { adminUrl } = await start();
    const client = new AdminClient({ adminUrl: `${adminUrl}/`, token: 'another' });
    const error = await failureOf(client.purge({ prefix: 'avatars/1/' }));
    expect(error).toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
  });
});

describe('behind a server that is not Darkroom, the admin client', () => {
  async function startOther(status: number, headers: Record<string, string>, body: string) {
    const server = createServer((_request, response) =>
      response.writeHead(status, headers).end(body),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    return new AdminClient({ adminUrl: `http://127.0.0.1:${port}`, token });
  }

  test('reports the status of a page', async () => {
    const client = await startOther(502, { 'Content-Type': 'text/html' }, '<h1>Bad Gateway</h1>');
    expect(await failureOf(client.readiness())).toMatchObject({ status: 502, code: undefined });
  });

  test('reports when to retry', async () => {
    const headers = { 'Content-Type': 'application/json', 'Retry-After': '7' };
    const client = await startOther(503, headers, '{"code":"OVERLOADED","message":"Later."}');
    const error = await failureOf(client.purge({ prefix: 'avatars/' }));
    expect(error).toMatchObject({ code: 'OVERLOADED', retryAfterSeconds: 7 });
  });

  test('returns the reasons of a 503', async () => {
    const body = { status: 'not ready', reasons: ['closing'], version: '1.0.0' };
    const headers = { 'Content-Type': 'application/json' };
    const client = await startOther(503, headers, JSON.stringify(body));
    expect(await client.readiness()).toEqual(body);
  });
});
