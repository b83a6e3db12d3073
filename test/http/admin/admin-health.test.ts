import { afterEach, describe, expect, it } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { METRICS_TOKEN, metricsSettings } from '../../support/telemetry/prometheus-text.ts';
import { createTestApp, samples, type TestApp } from '../../support/test-app.ts';

let app: TestApp;
afterEach(() => app.close());

async function ask(url: string, headers: Record<string, string> = {}) {
  const response = await app.admin?.inject({ url, headers });
  return response ?? expect.fail('there is no admin listener');
}

describe('the health of the service', () => {
  it('is open to anyone, and in no cache', async () => {
    app = await createTestApp({ settings: metricsSettings });
    const alive = await ask('/healthz');
    expect(alive.statusCode).toBe(200);
    expect(alive.json()).toEqual({ status: 'alive' });
    expect(alive.headers['cache-control']).toBe('no-store');
    const posted = await app.admin?.inject({ method: 'POST', url: '/healthz', payload: '{}' });
    expect(posted?.statusCode).toBe(401);
  });

  it('may be asked for by HEAD, or with a query', async () => {
    app = await createTestApp({ settings: metricsSettings });
    for (const url of ['/healthz', '/healthz?x', '/openapi.json?v=1']) {
      expect((await ask(url)).statusCode).toBe(200);
      const head = await app.admin?.inject({ method: 'HEAD', url });
      expect([head?.statusCode, head?.body]).toEqual([200, '']);
    }
    expect((await ask('/readyz?x')).json()).toMatchObject({ status: 'not ready' });
    expect((await ask('/healthz%3Fx')).statusCode).toBe(401);
    expect((await ask('/healthz/')).statusCode).toBe(401);
  });

  it('is not shown to the clients of media', async () => {
    app = await createTestApp({ settings: metricsSettings });
    for (const url of ['/healthz', '/readyz', '/metrics']) {
      expect((await app.server.inject(url)).statusCode).toBe(404);
    }
  });

  it('is not ready without a worker', async () => {
    app = await createTestApp({ settings: metricsSettings }); // whose renders are made elsewhere
    const response = await ask('/readyz');
    expect(response.statusCode).toBe(503);
    expect(response.json()).toMatchObject({
      status: 'not ready',
      reasons: expect.arrayContaining(['no worker is ready']),
    });
  });

  it('is not ready while it stops, and alive until all responses are out', async () => {
    const rendered = defer<Uint8Array>();
    app = await createTestApp({
      settings: metricsSettings,
      renderer: { render: () => rendered.promise },
    });
    app.originals.put('icons/1/ab', samples.jpeg);
    const port = await app.listen();
    const running = fetch(`http://127.0.0.1:${port}/icons/1/ab.webp?size=16`);
    await expect.poll(() => app.renderer.renders).toBe(1);
    const closed = app.close();
    expect((await ask('/readyz')).json()).toMatchObject({
      status: 'not ready',
      reasons: expect.arrayContaining(['draining']),
    });
    expect((await ask('/healthz')).statusCode).toBe(200);
    rendered.resolve(samples.webp);
    expect((await running).status).toBe(200);
    await closed;
  });
});

describe('the metrics', () => {
  it('need the token', async () => {
    app = await createTestApp({ settings: metricsSettings });
    expect((await ask('/metrics')).statusCode).toBe(401);
    expect((await ask('/metrics?x=/healthz')).statusCode).toBe(401);
    expect((await ask('/healthz/../metrics')).statusCode).toBe(401);
    expect((await ask('/metrics', { authorization: `Bearer ${METRICS_TOKEN}` })).statusCode).toBe(
      200,
    );
  });
});
