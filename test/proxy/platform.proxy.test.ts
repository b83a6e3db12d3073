import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { enforced, signatureOf } from '../support/signed-urls.ts';
import { signedPathOf } from '../support/sites/external-app.ts';
import { useSiteStack } from './stack.ts';

// The files of deploy/nginx with Darkroom as the platform's media service (contract §14); same.proxy.test.ts has more.

const OWN = 'https://cdn.example/media';
const key = 'attachments/1/1/country-lane.jpg';
const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;
const signature = signatureOf(key, inSeconds(3_600));
const stack = await useSiteStack({ COMPATIBILITY: 'fluxer', PUBLIC_URLS: OWN, ...enforced });
const statusOf = async (target: string, headers = {}) =>
  (await stack.request(target, { headers })).status;

describe('a local attachment as external media, with enforced signatures', () => {
  const inner = signedPathOf(`${OWN}/${key}?${signature}`);
  const outer = signedPathOf(`${OWN}/${key}`);

  test('is served only with its own valid signature, inside or outside the external path', async () => {
    const opaque = signedPathOf(`${OWN}/${key}?${signature}&width=20`);
    const good = [inner, opaque, `${outer}?${signature}`, `${outer}?width=20&${signature}`];
    const bad = [outer, `${outer}?${signature.replace('&hm=', '&hm=0')}`, `${outer}?width=20`];
    for (const _ of ['cold', 'warm']) {
      for (const target of good) {
        expect(await statusOf(target), target).toBe(200);
        expect(await statusOf(target, { Range: 'bytes=2-5' }), target).toBe(206);
      }
      for (const target of bad) expect(await statusOf(target), target).toBe(404);
    }
    expect((await stack.request(inner)).nginx).toBe('hit');
  });

  test('appears in no log with its signature', async () => {
    const hm = /hm=(\w+)/.exec(signature)?.[1] ?? '';
    const encoded = Buffer.from(signature).toString('base64url').slice(4, 40);
    const wrapped = signedPathOf(`${OWN}${inner}`);
    for (const target of [inner, wrapped, `${outer}?${signature}`, `${outer}?h%6D=${hm}`]) {
      await stack.request(target);
    }
    const lines = (): string => stack.nginx.accessLog();
    await expect.poll(lines, { timeout: 5_000 }).toContain('/external/[redacted] HTTP/1.1');
    for (const secret of [hm, encoded]) {
      expect(lines() + stack.nginx.log()).not.toContain(secret);
    }
  });

  test('is not served after its signature has expired, even while Darkroom is down', async () => {
    const ending = signatureOf(key, inSeconds(4));
    const urls = [
      signedPathOf(`${OWN}/${key}?${ending}`),
      `${outer}?${ending}`,
      `${outer}?${ending}&width=21`,
    ];
    for (const url of urls) {
      expect(await statusOf(url)).toBe(200);
      expect(await stack.request(url)).toMatchObject({ status: 200, nginx: 'hit' });
    }
    await sleep(5_000);
    for (const url of urls) expect(await statusOf(url)).toBe(404);
    const url = signedPathOf(`${OWN}/${key}?${signatureOf(key, inSeconds(3))}`);
    expect(await statusOf(url)).toBe(200);
    await stack.stopDarkroom();
    expect(await statusOf(url)).toBe(200);
    await sleep(4_000);
    expect(await statusOf(url)).toBe(502);
  }, 60_000);
});
