import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { signExternalUrl } from '../../src/client/signing.ts';
import { MediaUrls } from '../../src/client/urls.ts';
import { useBrowser } from './browser.ts';

const signingKeys = 'an-example-key-of-thirty-two-bytes-or-more';
const url = 'https://media.example.org/cat.png';

test('the client libraries return the same results in Chromium and Node', async () => {
  const browser = await useBrowser();
  const page = await (await browser.newContext()).newPage();
  // WebCrypto needs a secure context.
  await page.route('https://app.example/**', async (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname === '/') return route.fulfill({ contentType: 'text/html', body: '' });
    const body = await readFile(`dist/client${pathname}`);
    return route.fulfill({ contentType: 'text/javascript', body });
  });
  await page.goto('https://app.example/');
  // A string, since Vite would rewrite the imports of a function.
  const results = await page.evaluate(`(async () => {
    const { MediaUrls } = await import('/urls.js');
    const { signExternalUrl, verifyExternalUrl } = await import('/signing.js');
    const { AdminClient } = await import('/admin.js');
    const media = new MediaUrls({ cdnUrl: 'https://cdn.example.com' });
    const signingKeys = '${signingKeys}';
    const path = await signExternalUrl({ url: '${url}', signingKeys });
    return {
      avatar: media.avatar(2n ** 64n - 1n, 'ab12', { size: 80 }),
      path,
      verified: await verifyExternalUrl({ url: path, signingKeys }),
      admin: typeof new AdminClient({ adminUrl: 'https://admin.example', token: '' }).purge,
    };
  })()`);
  const media = new MediaUrls({ cdnUrl: 'https://cdn.example.com' });
  expect(results).toEqual({
    avatar: media.avatar(2n ** 64n - 1n, 'ab12', { size: 80 }),
    path: await signExternalUrl({ url, signingKeys }),
    verified: { verdict: 'valid', url },
    admin: 'function',
  });
});
