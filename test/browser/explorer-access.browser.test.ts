import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { measureContrast } from './contrast.ts';
import { overflow, PHONE, shareExplorer } from './explorer-browser.ts';

const WIDE = { viewport: { width: 1400, height: 900 } } as const;
const AXE = createRequire(import.meta.url).resolve('axe-core');
const AVATAR = '#/avatars/6/kl12.webp?size=512';

const { visit } = shareExplorer();

describe('who uses the explorer', () => {
  test('fits a phone: the sheet, then the picture, and nothing beside the screen', async () => {
    const { page, complaints } = await visit(PHONE);
    await page.locator('#sheet a').first().waitFor();
    await page.locator('#bench').waitFor({ state: 'hidden' });
    expect(await overflow(page)).toBe(0);
    await page.locator('#sheet a[aria-label^="guild banner 1"]').first().tap();
    await page.locator('#stage img').waitFor();
    await page.locator('#sheet').waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Measure 31 widths' }).tap();
    await page.getByText('the original is').waitFor();
    await page.locator('#compare').scrollIntoViewIfNeeded();
    await page.locator('.pair').waitFor();
    expect(await overflow(page)).toBe(0);
    await page.getByRole('link', { name: 'All originals' }).tap();
    await page.locator('#sheet').waitFor({ state: 'visible' });
    await page.locator('#bench').waitFor({ state: 'hidden' });
    expect(complaints).toEqual([]);
  });

  test.each(['light', 'dark'] as const)('can be read in the %s scheme', async (colorScheme) => {
    for (const options of [{ viewport: { width: 1440, height: 900 } }, PHONE]) {
      for (const hash of [AVATAR, '#/avatars/06/no!.webp', '#sheet']) {
        const { page } = await visit({ ...options, colorScheme }, hash);
        await page
          .locator(hash === '#sheet' ? '#sheet a' : '#response dd')
          .first()
          .waitFor();
        const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        expect(ground).toBe(colorScheme === 'dark' ? 'rgb(21, 20, 19)' : 'rgb(247, 245, 241)');
        const { texts, faint } = await measureContrast(page);
        expect(texts).toBeGreaterThan(20);
        expect(faint).toEqual([]);
      }
    }
  });

  test.each([
    ['light', WIDE],
    ['dark', WIDE],
    ['light', PHONE],
    ['dark', PHONE],
  ] as const)('breaks no rule of axe in the %s scheme, in %j', async (colorScheme, options) => {
    for (const hash of [AVATAR, '#/avatars/06/no!.webp?size=63', '#sheet']) {
      const { page } = await visit({ ...options, colorScheme, bypassCSP: true }, hash);
      const first = hash === '#sheet' ? '#sheet a' : '#stage:not([aria-busy])';
      await page.locator(first).first().waitFor();
      if (hash === AVATAR) {
        await page.locator('#stage img').waitFor();
        await page.locator('#compare').scrollIntoViewIfNeeded();
        await page.getByLabel('8×').check({ force: true });
      }
      expect(await findViolations(page), hash).toEqual([]);
    }
  });

  test.each([
    [1400, 900],
    [390, 844],
  ])('sees picture, URL and weight without scrolling at %i × %i', async (width, height) => {
    const { page } = await visit({ viewport: { width, height } }, AVATAR);
    await page.locator('#stage img').waitFor();
    for (const part of ['#url', '#stage img', '#stage .weight']) {
      const box = await page.locator(part).boundingBox();
      expect(box?.y, part).toBeGreaterThan(0);
      expect((box?.y ?? 0) + (box?.height ?? 0), part).toBeLessThan(height);
    }
    if (width > 1000) return;
    // And still does while the options below are changed.
    await page.locator('select[name=size]').focus();
    const [field, kept] = await Promise.all(
      ['select[name=size]', '.kept'].map((part) => page.locator(part).boundingBox()),
    );
    expect(field?.y).toBeGreaterThan((kept?.y ?? 0) + (kept?.height ?? 0));
    for (const part of ['#url', '#stage .weight', 'select[name=size]']) {
      const box = await page.locator(part).boundingBox();
      expect(box?.y, part).toBeGreaterThan(0);
      expect((box?.y ?? 0) + (box?.height ?? 0), part).toBeLessThan(height);
    }
  });

  test.each([
    ['a narrow window', { viewport: { width: 320, height: 700 } }],
    ['200 % zoom', { viewport: { width: 700, height: 450 }, deviceScaleFactor: 2 }],
    ['400 % zoom', { viewport: { width: 350, height: 225 }, deviceScaleFactor: 4 }],
  ])(
    'has nothing beside the screen in %s, with words as long as German ones',
    async (_, options) => {
      for (const hash of [AVATAR, '#/avatars/06/no!.webp?size=63', '#sheet']) {
        const { page } = await visit(options, hash);
        await page
          .locator(hash === '#sheet' ? '#sheet a' : '#stage:not([aria-busy])')
          .first()
          .waitFor();
        expect(await overflow(page), hash).toBe(0);
        await page.evaluate(() => {
          const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
            const isWord = /^[a-zA-Z ]{3,}$/.test(text.textContent ?? '');
            if (isWord) text.textContent = `${text.textContent}eigenschaften`;
          }
        });
        expect(await overflow(page), `${hash}, long words`).toBe(0);
      }
    },
  );

  test('shows what is on the keyboard: a ring around whatever has the focus', async () => {
    const { page } = await visit({ viewport: { width: 1400, height: 900 } }, AVATAR);
    await page.locator('#stage img').waitFor();
    const seen = new Set<string>();
    for (let tabs = 0; tabs < 60; tabs += 1) {
      await page.keyboard.press('Tab');
      const found = await page.evaluate(() => {
        const at = document.activeElement;
        if (at === null || at === document.body) return undefined;
        // That of a slider is around its handle, of which no style is told.
        const isSlider = at.getAttribute('type') === 'range';
        const ringed = [at, at.firstElementChild, at.nextElementSibling];
        const hasRing =
          isSlider || ringed.some((each) => each && getComputedStyle(each).outlineStyle !== 'none');
        const name =
          at.getAttribute('name') ?? at.getAttribute('aria-label') ?? at.textContent ?? '';
        return { name, hasRing };
      });
      if (found === undefined) break;
      expect(found.hasRing, found.name).toBe(true);
      seen.add(found.name);
    }
    for (const name of [
      'search',
      'only-moving',
      'url',
      'kind',
      'size',
      'ext',
      'animated',
      'ladder',
    ]) {
      expect(seen, name).toContain(name);
    }
    for (const name of ['Copy srcset', 'Open', 'Download', 'Ask again', 'Measure 31 widths']) {
      expect(seen, name).toContain(name);
    }
  });
});

/** What axe finds, by rule and element. */
async function findViolations(page: Page): Promise<readonly string[]> {
  await page.addScriptTag({ path: AXE });
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const { violations } = await axe.run();
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  });
}
