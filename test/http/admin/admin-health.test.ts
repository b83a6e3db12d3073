import { afterEach, describe, expect, it } from 'vitest';
import { createTestApp, samples, type TestApp } from '../../support/test-app.ts';

const token = 'a-token-of-the-tests';
const settings = { ADMIN_PORT: '0', ADMIN_TOKEN: token };

let app: TestApp;
afterEach(() => app.close());

async function ask(url: string, headers: Record<string, string> = {}) {
  const answer = await app.admin?.inject({ url, headers });
  return answer ?? expect.fail('there is no admin listener');
}

describe('the health of the service', () => {
  it('is told to anyone, and kept by nobody', async () => {
    app = await createTestApp({ settings });
    const alive = await ask('/healthz');
    expect(alive.statusCode).toBe(200);
    expect(alive.json()).toEqual({ status: 'alive' });
    expect(alive.headers['cache-control']).toBe('no-store');
    const posted = await app.admin?.inject({ method: 'POST', url: '/healthz', payload: '{}' });
    expect(posted?.statusCode).toBe(401);
  });

  it('is told to whoever asks with HEAD, or with a query', async () => {
    app = await createTestApp({ settings });
    for (const url of ['/healthz', '/healthz?x', '/openapi.json?v=1']) {
      expect((await ask(url)).statusCode).toBe(200);
      const head = await app.admin?.inject({ method: 'HEAD', url });
      expect([head?.statusCode, head?.body]).toEqual([200, '']);
    }
    expect((await ask('/readyz?x')).json()).toMatchObject({ status: 'not ready' });
    expect((await ask('/healthz%3Fx')).statusCode).toBe(401);
    expect((await ask('/healthz/')).statusCode).toBe(401);
  });

  it('is not told to the clients of media', async () => {
    app = await createTestApp({ settings });
    for (const url of ['/healthz', '/readyz', '/metrics']) {
      expect((await app.server.inject(url)).statusCode).toBe(404);
    }
  });

  it('is not ready without a worker', async () => {
    app = await createTestApp({ settings }); // whose renders are made elsewhere
    const answer = await ask('/readyz');
    expect(answer.statusCode).toBe(503);
    expect(answer.json()).toMatchObject({
      status: 'not ready',
      reasons: expect.arrayContaining(['no worker is ready']),
    });
  });

  it('is not ready while it stops, and alive until all is answered', async () => {
    let finish = (): void => undefined;
    const rendered = new Promise<Uint8Array>((resolve) => {
      finish = () => resolve(samples.webp);
    });
    app = await createTestApp({ settings, renderer: { render: () => rendered } });
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
    finish();
    expect((await running).status).toBe(200);
    await closed;
  });
});

describe('the metrics', () => {
  it('are for those who have the token', async () => {
    app = await createTestApp({ settings });
    expect((await ask('/metrics')).statusCode).toBe(401);
    expect((await ask('/metrics?x=/healthz')).statusCode).toBe(401);
    expect((await ask('/healthz/../metrics')).statusCode).toBe(401);
    expect((await ask('/metrics', { authorization: `Bearer ${token}` })).statusCode).toBe(200);
  });

  it('count how long renders wait, by lane', async () => {
    app = await createTestApp({ settings });
    app.originals.put('icons/1/ab', samples.jpeg);
    app.originals.put('emojis/1', samples.animatedGif);
    const urls = ['/icons/1/ab.webp?size=16', '/icons/1/ab.webp?size=20', '/emojis/1.gif?size=16'];
    for (const url of urls) expect((await app.server.inject(url)).statusCode).toBe(200);
    const { body } = await ask('/metrics', { authorization: `Bearer ${token}` });
    expect(body).toContain('# TYPE darkroom_queue_wait_seconds histogram\n');
    expect(body).toContain('darkroom_queue_wait_seconds_count{lane="light"} 3\n');
    expect(body).toContain('darkroom_queue_wait_seconds_count{lane="heavy"} 0\n');
    expect(body).toContain('darkroom_queue_wait_seconds_bucket{le="0.005",lane="light"} 3\n');
  });
});
