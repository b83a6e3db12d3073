import sharp from 'sharp';
import { expect, test } from 'vitest';
import {
  metricsSettings,
  sendToAdmin,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { samples, shareTestApp, useTestApp } from '../../support/test-app.ts';

// Contract §14, resources of the platform. Invalid paths: contract/leniency; documented responses: openapi-document.

const css = Buffer.from('body { color: rebeccapurple }\n');
/** First bytes of an Ogg audio file. */
const ogg = Buffer.from(`OggS${'\0'.repeat(22)}\x01\x13OpusHead${'\0'.repeat(400)}`, 'latin1');
const name = 'a'.repeat(128);

const platform = shareTestApp({ settings: { COMPATIBILITY: 'fluxer' } });
const strict = shareTestApp();

test.each([
  [`/themes/${name}.css`, `themes/${name}.css`, css, 'text/css; charset=utf-8'],
  ['/themes/_-Z.css?format=png&v=1', 'themes/_-Z.css', css, 'text/css; charset=utf-8'],
  ['/themes/markup.css', 'themes/markup.css', samples.html, 'text/css; charset=utf-8'],
  ['/entrance-sounds/1/a_b.ogg', 'entrance-sounds/1/a_b.ogg', ogg, /^audio\//],
  ['/entrance-sounds/0/cd34.m4a', 'entrance-sounds/0/cd34.m4a', samples.mp4, /^video\/mp4/],
] as const)(
  '%s is sent unchanged, with ranges, only in platform mode',
  async (target, key, bytes, type) => {
    platform.originals.put(key, bytes);
    strict.originals.put(key, bytes);
    const whole = await platform.get(target);
    expect([whole.statusCode, whole.rawPayload.equals(bytes)]).toEqual([200, true]);
    expect(whole.headers['content-type']).toMatch(type);
    expect(whole.headers['content-disposition']).toBeUndefined();
    expect(whole.headers).toMatchObject({
      'accept-ranges': 'bytes',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-robots-tag': 'noindex',
      'x-content-type-options': 'nosniff',
    });
    const part = await platform.get(target, { range: 'bytes=2-5' });
    expect([part.statusCode, part.payload]).toEqual([206, bytes.toString('utf8', 2, 6)]);
    expect(part.headers['content-type']).toMatch(type);
    const unknown = await strict.get(target);
    expect([unknown.statusCode, JSON.parse(unknown.payload).code]).toEqual([404, 'NOT_FOUND']);
  },
);

test('an audio file that is an HTML page is saved, not shown', async () => {
  platform.originals.put('entrance-sounds/1/page.mp3', samples.html);
  const { headers } = await platform.get('/entrance-sounds/1/page.mp3');
  expect(headers['content-disposition']).toBe('attachment; filename="page.mp3"');
});

test.each([
  ['/branding/instance/ab12.webp?size=1', 'branding/instance/ab12'],
  ['/branding/icons/a_ab12.AVIF', 'branding/icons/ab12'],
  [`/branding/${name}/cd.webp?size=big`, `branding/${name}/cd`],
])('%s is an icon of %s', async (target, key) => {
  platform.originals.put(key, samples.png);
  const { statusCode, headers, rawPayload } = await platform.get(target);
  expect([statusCode, headers['content-type']]).toEqual([200, 'image/webp']);
  expect((await sharp(rawPayload).metadata()).width).toBe(128);
  expect((await strict.get(target)).statusCode).toBe(404);
});

test('the admin listener purges resources of the platform and returns their metadata, only in platform mode', async () => {
  for (const [COMPATIBILITY, status] of [
    ['fluxer', 200],
    ['none', 400],
  ] as const) {
    const app = await useTestApp({ settings: { ...metricsSettings, COMPATIBILITY } });
    app.originals.put('branding/here/ab12', samples.png);
    app.originals.put('themes/dark.css', css);
    for (const key of ['branding/here/a_ab12', 'themes/dark.css']) {
      const url = `/metadata/${key}?placeholder=false`;
      expect((await app.requestAdmin(url, { headers: withToken })).statusCode).toBe(status);
    }
    const purged = await sendToAdmin(app, '/purge', { assets: ['branding/here/a_ab12'] });
    expect(purged.statusCode).toBe(status);
  }
});
