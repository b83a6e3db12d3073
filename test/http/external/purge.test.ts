import { beforeEach, describe, expect, test } from 'vitest';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { type ExternalApp, useExternalApp } from '../../support/sites/external-app.ts';
import { metricsSettings, withToken } from '../../support/telemetry/prometheus-text.ts';
import { samples } from '../../support/test-app.ts';

let app: ExternalApp;
let store: MemoryResultStore;

beforeEach(async () => {
  store = new MemoryResultStore();
  app = await useExternalApp({
    settings: metricsSettings,
    resultStore: store,
  });
  for (const path of ['/cat.jpg', '/dog.jpg']) app.site.serve(path, samples.jpeg);
});
async function purge(payload: object): Promise<unknown> {
  return (await app.askAdmin('/purge', { method: 'POST', headers: withToken, payload })).json();
}

/** Has renderings made of two pictures, two of the first one. */
async function fill(): Promise<void> {
  for (const [path, query] of [
    ['/cat.jpg', 'width=16'],
    ['/cat.jpg', 'width=24'],
    ['/dog.jpg', 'width=16'],
  ] as const) {
    expect((await app.ask(path, query)).status).toBe(200);
  }
  await expect.poll(() => store.paths.length).toBe(3);
}

const isHit = async (path: string): Promise<boolean> =>
  (await app.ask(path, 'width=16')).header('cache-status').startsWith('darkroom; hit');

describe('a purge of external media', () => {
  test('by URL removes all renderings, and has the site asked again', async () => {
    await fill();
    const before = app.site.requests.length;
    const spelled = app.urlOf('/x/../cat.jpg#top').replace('http:', 'HTTP:');
    expect(await purge({ external: [spelled] })).toEqual({ removed: { memory: 2, store: 2 } });
    expect(await isHit('/dog.jpg')).toBe(true);
    expect(await isHit('/cat.jpg')).toBe(false);
    const [asked] = app.site.requests.slice(before);
    expect(app.site.requests).toHaveLength(before + 1);
    expect(asked?.headers['if-none-match']).toBeUndefined();
  });

  test('has a failure forgotten', async () => {
    app.site.handlers.set('/late.jpg', (_, response) => response.writeHead(500).end());
    expect((await app.ask('/late.jpg', 'width=16')).status).toBe(502);
    app.site.serve('/late.jpg', samples.jpeg);
    expect((await app.ask('/late.jpg', 'width=16')).status).toBe(502);
    await purge({ external: [app.urlOf('/late.jpg')] });
    expect((await app.ask('/late.jpg', 'width=16')).status).toBe(200);
  });
});
