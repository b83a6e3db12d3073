import { expect, test } from 'vitest';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { SIGNING_KEY } from '../../support/signed-urls.ts';
import { SITE, signedPathOf, useExternalApp } from '../../support/sites/external-app.ts';
import { samples } from '../../support/test-app.ts';

// Contract §14: paths of external media as the platform encodes them; which URL each names, and which names none: test/contract/signing.

const keys = new SigningKeys([SIGNING_KEY]);
const sign = (target: string): string => `/external/${keys.sign(target, 'base64url')}/${target}`;

test('a path that is encoded once more is fetched as it stands in the URL, and shares its cache entry', async () => {
  const app = await useExternalApp({ settings: { COMPATIBILITY: 'fluxer' } });
  const host = `${SITE}:${app.site.port}`;
  const path = '/a%20b/c:d@2x,1%25.png';
  app.site.handlers.set(path, (request, response) => {
    if (request.url === `${path}?w=1&u=%2Fx`) response.end(samples.png);
    else response.writeHead(404).end();
  });
  const encoded = 'a%2520b/c%3Ad%402x%2C1%2525.png';
  const targets = [
    `%3Fw%3D1%26u%3D%252Fx/http/${host}/${encoded}`,
    `w%3D1%26u%3D%252Fx/http/${host}/${encoded}`,
    `http/${host}/${encoded}%3Fw%3D1%26u%3D%252Fx`,
  ];
  const paths = [...targets.map(sign), signedPathOf(`http://${host}${path}?w=1&u=%2Fx`)];
  for (const each of paths) {
    const { status, header } = await app.askTarget(`${each}?width=9&format=WEBP`);
    expect([status, header('content-type')], each).toEqual([200, 'image/webp']);
  }
  expect(app.site.requests.map(({ url }) => url)).toEqual([`${path}?w=1&u=%2Fx`]);
  expect(app.renderer.renders).toBe(1);
  expect((await app.askTarget(sign(`http/${host}/a%20b.png`))).status).toBe(404);
  expect(app.site.requests.at(-1)?.url).toBe('/a%20b.png');
});
