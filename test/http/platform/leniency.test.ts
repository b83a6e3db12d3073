import { expect, test } from 'vitest';
import { openFolderStorage } from '../../support/folder-storage.ts';
import { enforced, SIGNING_KEY, signatureOf } from '../../support/signed-urls.ts';
import { metricsSettings, order } from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { samples, shareTestApp, useTestApp } from '../../support/test-app.ts';

// Contract §14, "Leniency", through HTTP; what each request means: test/contract/leniency.test.ts.

const settings = { COMPATIBILITY: 'fluxer' };
const app = shareTestApp({ settings });

test('a download is saved under its name, and shares the rendering of what is shown', async () => {
  const key = 'attachments/x/y/z/photo.png';
  app.originals.put(key, samples.png);
  app.originals.put('avatars/8/ab', samples.png);
  const named = (disposition: string, name: string) => `${disposition}; filename="${name}"`;
  const dispositionOf = async (target: string) => {
    const { headers } = await app.get(target);
    return headers['content-disposition'];
  };
  const { renders } = app.renderer;
  for (const _ of ['', 'again']) {
    const shown = ['', '?download=false', '?download=yes'];
    for (const query of shown) {
      expect(await dispositionOf(`/${key}${query}`)).toBe(named('inline', 'photo.png'));
    }
    for (const value of ['true', 'TRUE', '1', 'false&download=1']) {
      expect(await dispositionOf(`/${key}?download=${value}`)).toBe(
        named('attachment', 'photo.png'),
      );
    }
    const webp = `/${key}?width=20&format=WEBP`;
    expect(await dispositionOf(`${webp}&download=true`)).toBe(named('attachment', 'photo.webp'));
    expect(await dispositionOf(webp)).toBe(named('inline', 'photo.webp'));
    expect(await dispositionOf('/avatars/8/ab.webp?download=true')).toBe('attachment');
    expect(await dispositionOf('/avatars/8/ab.webp')).toBeUndefined();
  }
  expect(app.renderer.renders - renders).toBe(2);
});

test('a signature covers the whole key of an attachment, however its slashes are written', async () => {
  const now = Date.UTC(2026, 0, 1) / 1000;
  const { originals, get } = await useTestApp({
    settings: { ...settings, ...enforced },
    wallClock: () => now * 1000,
  });
  const key = 'attachments/a/b/c/photo.png';
  originals.put(key, samples.png);
  const query = signatureOf(key, now + 3_600, SIGNING_KEY);
  for (const path of [key, 'attachments/a%2Fb/c/photo.png', 'attachments/a/b%2fc%2Fphoto.png']) {
    expect((await get(`/${path}?${query}&width=5000`)).statusCode).toBe(200);
    expect((await get(`/${path}?width=5000`)).statusCode).toBe(404);
  }
  expect((await get(`/attachments/a/b/photo.png?${query}`)).statusCode).toBe(404);
});

test('a purge knows what lenient paths mean', async () => {
  const app = await useTestApp({ settings: { ...settings, ...metricsSettings } });
  const { originals, get, renderer } = app;
  const purge = async (payload: object) => (await order(app, '/purge', payload)).json();
  const target = '/attachments/deep/er/than/usual/a.png?width=9';
  originals.put('attachments/deep/er/than/usual/a.png', samples.png);
  await get(target);
  const orders = [
    { paths: [`${target}&format=no`] },
    { assets: ['attachments/deep/er/than/usual/a.png'] },
    { prefix: 'attachments/deep/er/' },
  ];
  for (const each of orders) {
    expect(await purge(each)).toEqual({ removed: { memory: 1, store: 0 } });
    expect((await get(target)).statusCode).toBe(200);
  }
  expect(renderer.renders).toBe(1 + orders.length);
});

test('a key that no folder can hold is missing there', async () => {
  const { path, put } = await useTemporaryFolder();
  const { origin } = await openFolderStorage(path);
  const { get } = await useTestApp({ settings, origin });
  await put('attachments/a/b/c/d/e', samples.png);
  const statusOf = async (target: string) => (await get(`/attachments/${target}`)).statusCode;
  expect(await statusOf('a/b%2Fc/d/e?width=9')).toBe(200);
  const missing = ['x'.repeat(1_012), `a/${'y/'.repeat(500)}z`, 'a/b/c/d/e/f', 'a/b/c/d'];
  for (const target of missing) expect(await statusOf(target), target).toBe(404);
});

test('methods and preflights know the paths', async () => {
  for (const path of ['/attachments/a', '/attachments/a/b/c/d', '/avatars/1/ab.JXL']) {
    const { status, headers } = await app.send('POST', path);
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
    expect((await app.send('OPTIONS', path)).status).toBe(204);
  }
});
