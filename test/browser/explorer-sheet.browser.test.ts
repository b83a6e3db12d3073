import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import { settle, shareExplorer } from './explorer-browser.ts';

/** How many emojis, stickers and attachments there are besides the samples. */
const MANY = 3_000;

const folder = mkdtempSync(join(tmpdir(), 'darkroom-many-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The samples, and thousands of others, which are listed and no more: few of them are ever seen. */
function fillFolder(): string {
  cpSync('fixtures/originals', folder, { recursive: true });
  mkdirSync(join(folder, 'attachments/9/9'), { recursive: true });
  for (let number = 0; number < MANY; number += 1) {
    for (const key of ['emojis/7', 'stickers/7', 'attachments/9/9/note-']) {
      writeFileSync(join(folder, `${key}${String(number).padStart(4, '0')}`), 'x');
    }
  }
  return folder;
}

const { visit } = shareExplorer(() => ({ STORAGE_DIR: fillFolder() }));

const focused = (page: Page) =>
  page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '');
const section = (page: Page, heading: string) =>
  page.locator('#sheet section').filter({ has: page.getByRole('button', { name: heading }) });
const searchbox = (page: Page) => page.getByRole('searchbox');
const STILL = { reducedMotion: 'reduce' } as const;
const MOVING = { reducedMotion: 'no-preference' } as const;

describe('a sheet of thousands', () => {
  test('is one stop of the Tab key, and arrows reach its end', async () => {
    const { page } = await visit();
    await page.locator('#stage img').waitFor();
    expect(await page.locator('#sheet a[tabindex="0"]').count()).toBe(1);
    const counts = await page.locator('#sheet h2 .soft').allTextContents();
    expect(counts.filter((text) => /^3,0\d\d$/.test(text))).toHaveLength(3);
    await page.locator('#sheet a[tabindex="0"]').focus();
    await page.keyboard.press('End');
    await expect.poll(() => focused(page)).toMatch(/^default avatar 5/);
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => focused(page)).toMatch(/^default avatar 4/);
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    await expect.poll(() => focused(page)).toMatch(/^attachment 9 \/ 9 \/ note-2999/);
    expect(await page.locator('#sheet a[tabindex="0"]').count()).toBe(1);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    expect(await focused(page)).not.toMatch(/^attachment/);
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Shift+Tab');
    await expect.poll(() => focused(page)).toMatch(/^attachment 9 \/ 9 \/ note-2999/);
  });

  test('has as many elements as are seen, and shows any that is scrolled to', async () => {
    const { page } = await visit();
    await page.locator('#stage img').waitFor();
    expect(await page.locator('#sheet a').count()).toBeLessThan(800);
    const heightOf = () => page.locator('#sheet').evaluate((sheet) => sheet.scrollHeight);
    const height = await heightOf();
    expect(height).toBeGreaterThan((2 * MANY * 76) / 4);
    const list = section(page, 'Emojis');
    await list.locator('ul').nth(40).scrollIntoViewIfNeeded();
    await list.locator('ul').nth(40).locator('a').first().waitFor();
    // What is there is as high as what was not.
    expect(Math.abs((await heightOf()) - height)).toBeLessThan(height / 100);
  });

  test('shows where the original is that an address names', async () => {
    const { page } = await visit({}, '#/emojis/71234.webp');
    const frame = page.locator('#sheet a[aria-current]');
    await frame.waitFor();
    expect(await frame.getAttribute('aria-label')).toMatch(/^custom emoji 71234/);
    const height = page.viewportSize()?.height ?? 0;
    await expect.poll(async () => (await frame.boundingBox())?.y ?? height).toBeLessThan(height);
    expect((await frame.boundingBox())?.y).toBeGreaterThan(0);
  });

  test('is searched, and filtered by kind', async () => {
    const { page } = await visit();
    await page.locator('#stage img').waitFor();
    await searchbox(page).fill('note-29');
    await page.getByText('100 found').waitFor();
    expect(await page.locator('#sheet section').count()).toBe(1);
    await searchbox(page).fill('NO SUCH');
    await page.getByText('None found').waitFor();
    await searchbox(page).fill('');
    await page.getByLabel('Kinds shown').selectOption('user avatar');
    await page.getByText('12 found').waitFor();
    expect(await page.locator('#sheet section a').count()).toBe(12);
  });

  test('folds by kind, and what is folded away is passed over', async () => {
    const { page } = await visit();
    await page.locator('#stage img').waitFor();
    const fold = page.getByRole('button', { name: 'Avatars', exact: true });
    expect(await fold.getAttribute('aria-expanded')).toBe('true');
    await fold.click();
    expect(await fold.getAttribute('aria-expanded')).toBe('false');
    expect(await section(page, 'Avatars').first().locator('a').count()).toBe(0);
    await page.locator('#sheet a[tabindex="0"]').focus();
    expect(await focused(page)).toMatch(/^guild icon/);
    await fold.click();
    await page.locator('#sheet a[aria-label^="user avatar 1 "]').waitFor();
  });
});

describe('what moves', () => {
  const moving = 'a[aria-label^="user avatar 7 "]';

  test('is marked, moves while it is pointed at or focused, and is picked moving', async () => {
    const { page } = await visit(MOVING);
    const frame = page.locator(`#sheet ${moving}`);
    await frame.locator('.moves').waitFor();
    expect(await frame.getAttribute('aria-label')).toMatch(/, moves$/);
    expect(await page.locator('#sheet a[aria-label^="user avatar 1 "] .moves').count()).toBe(0);
    const source = () => frame.locator('img').getAttribute('src');
    expect(await source()).not.toContain('animated');
    await frame.hover();
    await expect.poll(source).toContain('animated=true');
    await page.mouse.move(900, 10);
    await expect.poll(source).not.toContain('animated');
    await frame.focus();
    await expect.poll(source).toContain('animated=true');
    await page.keyboard.press('Enter');
    await settle(page, '/avatars/7/mn34.webp?size=512&animated=true');
    expect(await page.locator('input[name=animated]:checked').inputValue()).toBe('true');
  });

  test('stands still for those who want less motion', async () => {
    const { page } = await visit(STILL);
    const frame = page.locator(`#sheet ${moving}`);
    await frame.locator('.moves').waitFor();
    await frame.hover();
    await frame.focus();
    expect(await frame.locator('img').getAttribute('src')).not.toContain('animated');
  });

  test('is found by that, and by its format', async () => {
    const { page } = await visit();
    await page.getByLabel('Kinds shown').selectOption('user avatar');
    await page.locator(`#sheet ${moving} .moves`).waitFor();
    await page.getByLabel('moving').check();
    await page.getByText('3 found').waitFor();
    await page.getByLabel('Formats shown').selectOption('gif');
    await expect.poll(() => page.locator('#found').textContent()).toMatch(/^[12] found$/);
    await page.getByLabel('moving').uncheck();
    await page.getByLabel('Formats shown').selectOption('jpeg');
    await expect.poll(() => page.locator('#found').textContent()).toMatch(/^\d found$/);
  });
});
