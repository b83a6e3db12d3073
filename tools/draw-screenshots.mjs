/**
 * Creates the pictures of clients.md, `docs/images/explorer-*.webp`, and the recording of README,
 * `docs/images/explorer.webp`, with Debian's chromium and the fonts of this machine, from a running `npm start`:
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

const shots = [
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
  // Wait for the thumbnails first, so that the shown response does not wait for their renders.
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

const frames = [];
const recorded = await browser.newPage({ viewport: { width: 1100, height: 830 } });

/** Adds a frame that shows the page as it is now. */
async function record(delayMs) {
  frames.push({ picture: await recorded.screenshot(), delayMs });
}

/** Waits for the picture of the stage, then adds a frame. */
async function recordRendering(delayMs) {
  await recorded.locator('#stage:not([aria-busy]) img').waitFor();
  await recorded.waitForLoadState('networkidle');
  await record(delayMs);
}

await recorded.goto(`${SERVICE}/#/avatars/1/ab12.webp?size=512`);
await recordRendering(1500);
await recorded.locator('select[name=size]').selectOption('128');
await recordRendering(1300);
await recorded.getByLabel('low', { exact: true }).check({ force: true });
await recordRendering(1300);
await recorded.goto(`${SERVICE}/#/avatars/2/a_cd34.webp?size=256&animated=true`);
await recordRendering(60);
for (let frame = 0; frame < 12; frame += 1) await record(70);
await recorded.goto(`${SERVICE}/#${PANDA}`);
await recordRendering(1200);
await recorded.getByRole('button', { name: 'Compare' }).click();
await recorded.locator('.pair').waitFor();
await recorded.getByLabel('2×', { exact: true }).check({ force: true });
await recorded.waitForLoadState('networkidle');
await recorded.locator('.pair').evaluate((element) => element.scrollIntoView({ block: 'end' }));
const pair = await recorded.locator('.pair').boundingBox();
const middle = pair.y + pair.height / 2;
await recorded.mouse.move(pair.x + pair.width / 2, middle);
await record(900);
await recorded.mouse.down();
for (const place of [0.42, 0.34, 0.26, 0.34, 0.42, 0.5, 0.58, 0.66, 0.74, 0.66, 0.58, 0.5]) {
  await recorded.mouse.move(pair.x + pair.width * place, middle);
  await record(110);
}
await recorded.mouse.up();
await record(1500);
const recording = sharp(
  frames.map(({ picture }) => picture),
  { join: { animated: true } },
).webp({ quality: 75, effort: 6, delay: frames.map(({ delayMs }) => delayMs), loop: 0 });
writeFileSync('docs/images/explorer.webp', await recording.toBuffer());
await browser.close();
