import { beforeEach, describe, expect, it } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { metricsSettings, withToken } from '../../support/telemetry/prometheus-text.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

let app: TestApp;
beforeEach(async () => {
  app = await useTestApp({ settings: metricsSettings });
});

describe('the health of the service', () => {
  it('is open to anyone, and in no cache', async () => {
    const alive = await app.askAdmin('/healthz');
    expect(alive.statusCode).toBe(200);
    expect(alive.json()).toEqual({ status: 'alive' });
    expect(alive.headers['cache-control']).toBe('no-store');
    const posted = await app.askAdmin('/healthz', { method: 'POST', payload: '{}' });
    expect(posted.statusCode).toBe(401);
  });

  it('may be asked for by HEAD, or with a query', async () => {
    for (const url of ['/healthz', '/healthz?x', '/openapi.json?v=1']) {
      expect((await app.askAdmin(url)).statusCode).toBe(200);
      const head = await app.askAdmin(url, { method: 'HEAD' });
      expect([head.statusCode, head.body]).toEqual([200, '']);
    }
    expect((await app.askAdmin('/readyz?x')).json()).toMatchObject({ status: 'not ready' });
    expect((await app.askAdmin('/healthz%3Fx')).statusCode).toBe(401);
    expect((await app.askAdmin('/healthz/')).statusCode).toBe(401);
  });

  it('is not shown to the clients of media', async () => {
    for (const url of ['/healthz', '/readyz', '/metrics']) {
      expect((await app.get(url)).statusCode).toBe(404);
    }
  });

  // Whose renders are made elsewhere.
  it('is not ready without a worker', async () => {
    const response = await app.askAdmin('/readyz');
    expect(response.statusCode).toBe(503);
    expect(response.json()).toMatchObject({
      status: 'not ready',
      reasons: expect.arrayContaining(['no worker is ready']),
    });
  });

  it('is not ready while it stops, and alive until all responses are out', async () => {
    const rendered = defer<Uint8Array>();
    app = await useTestApp({
      settings: metricsSettings,
      renderer: { render: () => rendered.promise },
    });
    app.originals.put('icons/1/ab', samples.jpeg);
    const running = app.send('GET', '/icons/1/ab.webp?size=16');
    await expect.poll(() => app.renderer.renders).toBe(1);
    const closed = app.close();
    expect((await app.askAdmin('/readyz')).json()).toMatchObject({
      status: 'not ready',
      reasons: expect.arrayContaining(['draining']),
    });
    expect((await app.askAdmin('/healthz')).statusCode).toBe(200);
    rendered.resolve(samples.webp);
    expect((await running).status).toBe(200);
    await closed;
  });
});

describe('the metrics', () => {
  it('need the token', async () => {
    expect((await app.askAdmin('/metrics')).statusCode).toBe(401);
    expect((await app.askAdmin('/metrics?x=/healthz')).statusCode).toBe(401);
    expect((await app.askAdmin('/healthz/../metrics')).statusCode).toBe(401);
    expect((await app.askAdmin('/metrics', { headers: withToken })).statusCode).toBe(200);
  });
});
