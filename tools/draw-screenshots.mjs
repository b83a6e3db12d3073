/**
 * Draws the pictures of README and clients.md, `docs/images/explorer-*.webp`, with Debian's chromium and the fonts of this
 * machine, from the service that `npm start` has started:
 *
 *     node tools/draw-screenshots.mjs
 */

import { writeFileSync } from 'node:fs';
import { chromium } from 'playwright-core';
import sharp from 'sharp';

const SERVICE = 'http://127.0.0.1:3000';
const DESK = { viewport: { width: 1440, height: 1220 } };
const HAND = { viewport: { width: 390, height: 1500 }, deviceScaleFactor: 2, isMobile: true };
const PANDA = '/attachments/1/12/red-panda.jpg?width=1024&format=webp&quality=high';

/** @type {readonly [name: string, target: string, options: import('playwright-core').BrowserContextOptions][]} */
const shots = [
  ['light', '/avatars/1/ab12.webp?size=512', DESK],
  ['dark', PANDA, { ...DESK, colorScheme: 'dark' }],
  ['narrow', '/icons/1/ab12.webp?size=320', HAND],
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  // Its sandbox does not work for root.
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});
for (const [name, target, options] of shots) {
  const page = await browser.newPage({ reducedMotion: 'reduce', ...options });
  // The thumbnails come first, so that the shown response did not wait for their renders.
  await page.goto(`${SERVICE}/#/avatars/1/ab12.png?size=16`);
  await page.waitForLoadState('networkidle');
  await page.goto(`${SERVICE}/#${target}`);
  await page.waitForFunction(
    (end) => document.querySelector('textarea')?.value.endsWith(end),
    target,
  );
  await page.locator('#stage:not([aria-busy]) img').waitFor();
  await page.locator('#original-facts').getByText('Format').waitFor();
  await page.getByRole('button', { name: 'Measure all widths' }).click();
  await page.getByText('the original is').waitFor();
  await page.mouse.move(0, 0);
  if (name === 'dark') {
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.locator('#compare').scrollIntoViewIfNeeded();
    await page.locator('.pair').waitFor();
    await page.getByLabel('2×', { exact: true }).check({ force: true });
    await page.locator('#response-title').evaluate((element) => element.scrollIntoView());
  }
  if (name !== 'dark') await page.evaluate(() => scrollTo(0, 0));
  await page.waitForLoadState('networkidle');
  const picture = sharp(await page.screenshot()).webp({ quality: 82, effort: 6 });
  writeFileSync(`docs/images/explorer-${name}.webp`, await picture.toBuffer());
}
await browser.close();
