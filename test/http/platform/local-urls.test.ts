import { describe, expect, test } from 'vitest';
import { formatExternalPath } from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { enforced, signatureOf } from '../../support/signed-urls.ts';
import {
  type ExternalAppOptions,
  signedPathOf,
  useExternalApp,
} from '../../support/sites/external-app.ts';
import { samples } from '../../support/test-app.ts';

// Contract §14: a URL of this service, requested as external media, is read from the storage and never fetched.

const CDN = 'https://cdn.example';
const now = Date.UTC(2026, 0, 1) / 1000;
const key = 'attachments/1/2/photo.png';

async function start({ settings = {}, ...more }: ExternalAppOptions = {}) {
  const app = await useExternalApp({
    settings: { PUBLIC_URLS: `${CDN}/, http://Media.Example:8080/media`, ...settings },
    wallClock: () => now * 1000,
    ...more,
  });
  app.originals.put(key, samples.png);
  app.originals.put('avatars/1/ab12', samples.png);
  app.site.serve('/cat.png', samples.png);
  const request = async (target: string) => {
    const { status, header, body } = await app.requestTarget(target);
    const names = ['cache-control', 'etag', 'content-type', 'content-disposition'];
    return [status, ...names.map(header), status === 200 ? body.length : body.toString()];
  };
  const redirect = (path: string, location: string): string => {
    app.site.redirect(path, location);
    return app.urlOf(path);
  };
  return Object.assign(app, {
    redirect,
    requestPath: request,
    requestExternally: (url: string, query = '') => request(signedPathOf(url, query)),
  });
}

/** Shared by tests that do not change its state. */
const shared = await start();

describe('a URL of this service', () => {
  test.each([
    ['/avatars/1/ab12.webp?size=64', '', '/avatars/1/ab12.webp?size=64'],
    ['/avatars/1/ab12.webp?size=64', 'size=32&quality=low', '/avatars/1/ab12.webp?size=64'],
    ['/avatars/1/ab12.webp', 'size=32&quality=low', '/avatars/1/ab12.webp?size=32&quality=low'],
    ['/avatars/1/ab12.webp?', 'size=32', '/avatars/1/ab12.webp?size=32'],
    [`/${key}`, '', `/${key}`],
    [`/${key}`, 'width=20', `/${key}?width=20`],
    [`/${key}?v=1`, 'width=20', `/${key}`],
    ['/avatars/1/ab12.exe', '', '/avatars/1/ab12.exe'],
    ['/avatars/2/ab12.png', '', '/avatars/2/ab12.png'],
    [`/${key}?width=0`, '', `/${key}?width=0`],
    ['/avatars/3.png', '', '/avatars/3.png'],
  ])('%s with the outer query "%s" returns the same as %s', async (path, query, same) => {
    const expected = await shared.requestPath(same);
    for (const base of [CDN, 'https://CDN.example.:443', 'http://media.example:8080/m%65dia']) {
      expect(await shared.requestExternally(`${base}${path}`, query)).toEqual(expected);
    }
    expect(shared.site.requests).toEqual([]);
    expect(shared.resolver.names).toEqual([]);
  });

  test.each([
    ...['/', '', '/nowhere', '/v1/relay/attachments/1/2/a?t=x', '//avatars/1/ab12.png'],
    ...['/external/', `/external/${'A'.repeat(43)}/https/site.test/cat.png`],
  ])('%s, which is not media of this service, returns 502 like any failing URL', async (path) => {
    shared.resolver.set('evil.test', ['10.0.0.1']);
    expect(await shared.requestExternally(`${CDN}${path}`)).toEqual(
      await shared.requestExternally('http://evil.test/'),
    );
    expect(shared.dialled).toEqual([]);
  });

  test('that is for external media is unwrapped once, with its signature verified', async () => {
    const app = await start();
    const cat = signedPathOf(app.urlOf('/cat.png'));
    expect(await app.requestExternally(`${CDN}${cat}`)).toEqual(await app.requestPath(cat));
    expect(await app.requestExternally(`${CDN}${cat}`, 'width=9')).toEqual(
      await app.requestPath(`${cat}?width=9`),
    );
    expect(app.site.requests.map(({ url }) => url)).toEqual(Array(3).fill('/cat.png'));
    const nested = signedPathOf(`${CDN}/${key}`);
    expect(await app.requestExternally(`${CDN}${nested}`)).toEqual(
      await app.requestPath(`/${key}`),
    );
    const others = new SigningKeys(['x'.repeat(32)]);
    const twice = signedPathOf(`${CDN}${cat}`);
    const wrong = formatExternalPath(app.urlOf('/cat.png'), others);
    for (const path of [twice, wrong]) {
      expect((await app.requestExternally(`${CDN}${path}`))[0]).toBe(502);
    }
  });

  test('that is for an attachment needs its signature, and is cached while that is valid', async () => {
    const app = await start({ settings: enforced });
    const [valid, wrong] = [3_600, 0].map((left) => signatureOf(key, now + left));
    const missing = await app.requestPath(`/${key}`);
    expect(missing[0]).toBe(404);
    const cases = [
      [`${CDN}/${key}?${valid}`, '', `/${key}?${valid}`],
      [`${CDN}/${key}?width=9&${valid}`, 'width=20', `/${key}?width=9&${valid}`],
      [`${CDN}/${key}`, `width=9&${valid}`, `/${key}?width=9&${valid}`],
      [`${CDN}/${key}?width=0&${valid}`, '', `/${key}?width=0&${valid}`],
    ] as const;
    for (const [url, query, path] of cases) {
      const expected = await app.requestPath(path);
      expect(expected[1]).toMatch(/^public, max-age=(3599|300)$/);
      for (const _ of ['', 'again'])
        expect(await app.requestExternally(url, query)).toEqual(expected);
    }
    expect(await app.requestExternally(`${CDN}/${key}?${wrong}`)).toEqual(missing);
    expect(await app.requestExternally(`${CDN}/${key}`)).toEqual(missing);
    expect(await app.requestExternally(`${CDN}/${key}?v=1`, valid)).toEqual(missing);
  });
});

describe('a redirect to a URL of this service', () => {
  const HOUR = 'public, max-age=3600';

  test('returns the same as the URL, and is cached like external media without a lifetime', async () => {
    const app = await start({ settings: enforced });
    const signed = signatureOf(key, now + 600);
    const cases = [
      [`/${key}?${signed}`, '', `/${key}?${signed}`, 'public, max-age=599'],
      [`/${key}?width=9&${signed}`, '', `/${key}?width=9&${signed}`, 'public, max-age=599'],
      ['/avatars/1/ab12.webp', 'size=32', '/avatars/1/ab12.webp?size=32', HOUR],
      ['/avatars/1/ab12.webp?size=64', 'width=9', '/avatars/1/ab12.webp?size=64', HOUR],
      [`/${key}`, '', `/${key}`, 'public, max-age=30'],
      ['/avatars/9/ab12.webp', '', '/avatars/9/ab12.webp', 'public, max-age=30'],
    ] as const;
    for (const [location, query, path, caching] of cases) {
      const [status, , ...expected] = await app.requestPath(path);
      const url = app.redirect(`/${app.site.handlers.size}`, `${CDN}${location}`);
      for (const _ of ['', 'again']) {
        expect(await app.requestExternally(url, query)).toEqual([status, caching, ...expected]);
      }
    }
    // Redirects are remembered like failures: one request to the site for each.
    expect(app.site.requests).toHaveLength(cases.length);
    app.clock.advance(60_000);
    app.site.serve('/1', samples.png);
    expect((await app.requestExternally(app.urlOf('/1')))[0]).toBe(200);
    expect(app.site.requests).toHaveLength(cases.length + 1);
  });

  test('gets a 502 if its URL is not for media, or leads to another such redirect', async () => {
    const app = await start();
    const back = app.redirect('/back', `${CDN}${signedPathOf(app.urlOf('/back'))}`);
    const urls = [app.redirect('/none', `${CDN}/nowhere`), back];
    for (const url of urls) expect((await app.requestExternally(url, 'width=9'))[0]).toBe(502);
    const cat = `${CDN}${signedPathOf(app.urlOf('/cat.png'))}`;
    expect((await app.requestExternally(app.redirect('/cat', cat)))[0]).toBe(200);
  });

  test('replaces earlier media of the site', async () => {
    const app = await start();
    app.site.serve('/photo', samples.jpeg);
    const url = app.urlOf('/photo');
    const before = await app.requestExternally(url, 'width=9');
    app.redirect('/photo', `${CDN}/${key}`);
    app.clock.advance(3_600_000);
    const after = await app.requestExternally(url, 'width=9');
    expect([before[0], after[0], after[3]]).toEqual([200, 200, 'image/png']);
    app.site.serve('/photo', samples.jpeg);
    app.clock.advance(60_000);
    expect(await app.requestExternally(url, 'width=9')).toEqual(before);
  });
});
