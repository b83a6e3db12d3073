import { execFileSync, spawn } from 'node:child_process';
import { cp, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { atEnd } from '../support/at-end.ts';
import { startService } from '../support/processes/service-process.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { useBrowser } from './browser.ts';

const keys = {
  ATTACHMENT_SIGNING_KEYS: 'an-example-key-for-attachments-of-32-bytes',
  RELAY_SIGNING_KEYS: 'an-example-key-for-uploads-of-32-bytes-or-more',
};

/** Starts the API of the examples, and returns its URL. */
async function startApi(environment: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(process.execPath, ['docs/examples/api.mjs'], {
    env: { PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  atEnd(() => child.kill());
  for await (const output of child.stdout) {
    const [, url] = /^Open (\S+)$/m.exec(String(output)) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error('The API exited.');
}

test('the example page compiles', () => {
  execFileSync('node_modules/.bin/tsc', ['-p', 'docs/examples'], { stdio: 'inherit' });
});

test('the example page shows pictures, uploads one, and reads it by its signed URL', async () => {
  execFileSync('npm', ['run', '--silent', 'build:examples'], { stdio: 'inherit' });
  const originals = await useTemporaryDirectory();
  await cp('fixtures/originals', originals.path, { recursive: true });
  const service = await startService({
    ...keys,
    STORAGE_DIR: originals.path,
    ATTACHMENT_SIGNING: 'enforce',
  });
  atEnd(() => service.stop());
  const api = await startApi({ ...keys, CDN_URL: service.origin });

  const browser = await useBrowser();
  const page = await (await browser.newContext({ deviceScaleFactor: 2 })).newPage();
  const widthOf = (id: string) =>
    page.evaluate<number>(`document.getElementById('${id}').naturalWidth`);
  await page.goto(api);
  await expect.poll(() => widthOf('avatar')).toBe(80);
  // The natural width of a srcset is in CSS pixels.
  await expect.poll(() => widthOf('emoji')).toBe(22);

  const picture = 'fixtures/originals/avatars/1/ab12';
  await page.setInputFiles('#file', {
    name: 'cat picture é.jpg',
    mimeType: 'image/jpeg',
    buffer: await readFile(picture),
  });
  await expect.poll(() => page.textContent('#status')).toBe('Sent cat picture é.jpg');
  await expect.poll(() => widthOf('preview')).toBe(320);
  const url = (await page.getAttribute('#status a', 'href')) ?? '';
  const response = await fetch(url);
  expect(response.status).toBe(200);
  expect(Buffer.from(await response.arrayBuffer())).toEqual(await readFile(picture));
  expect((await fetch(url.replace(/\?.*/, ''))).status).toBe(404);
});
