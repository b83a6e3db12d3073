import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContextOptions } from 'playwright-core';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { useExplorer } from './explorer-browser.ts';

/** Where the README finds them. */
const FOLDER = 'docs/images';

/** The port that is seen in them: the one that everybody has. */
const PORT = '3000';

/** More would be much to load for who only wants to read. */
const MAX_BYTES = 250_000;

interface Shot extends BrowserContextOptions {
  readonly name: string;
  readonly hash: string;
  /** The heading that it begins with; without one, it begins with the page. */
  readonly from?: string;
}

const shots: readonly Shot[] = [
  {
    name: 'explorer-light',
    hash: '#/avatars/1/ab12.webp?size=512',
    colorScheme: 'light',
    viewport: { width: 1440, height: 1220 },
  },
  {
    name: 'explorer-dark',
    hash: '#/attachments/1/12/red-panda.jpg?width=1024&format=webp&quality=high',
    from: 'response-title',
    colorScheme: 'dark',
    viewport: { width: 1440, height: 1220 },
  },
  {
    name: 'explorer-narrow',
    hash: '#/icons/1/ab12.webp?size=320',
    colorScheme: 'light',
    viewport: { width: 390, height: 1500 },
    deviceScaleFactor: 2,
    isMobile: true,
  },
];

const { visit } = await useExplorer({ PORT });

/** Written when SCREENSHOTS is `write`; in the fonts of the machine, so never compared. */
test.each(shots)('the picture of the README: $name', async ({ name, hash, from, ...options }) => {
  const { page, complaints } = await visit(options, hash);
  await page.locator('#stage img').waitFor();
  await page.locator('#original-facts').getByText('Format').waitFor();
  await page.getByRole('button', { name: 'Measure 31 widths' }).click();
  await page.getByText('the original is').waitFor();
  await page.mouse.move(0, 0);
  if (from !== undefined) {
    await page.locator('#compare').scrollIntoViewIfNeeded();
    await page.locator('.pair').waitFor();
    await page.getByLabel('2×').check({ force: true });
  }
  await page.evaluate(
    (id) => (id === undefined ? scrollTo(0, 0) : document.getElementById(id)?.scrollIntoView()),
    from,
  );
  await page.waitForLoadState('networkidle');
  const picture = await sharp(await page.screenshot())
    .webp({ quality: 82, effort: 6 })
    .toBuffer();
  expect(complaints).toEqual([]);
  expect(picture.length).toBeLessThan(MAX_BYTES);
  if (process.env.SCREENSHOTS !== 'write') return;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${name}.webp`), picture);
});
