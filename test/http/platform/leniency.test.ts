import { expect, test } from 'vitest';
import { enforced, SIGNING_KEY, signatureOf } from '../../support/signed-urls.ts';
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
