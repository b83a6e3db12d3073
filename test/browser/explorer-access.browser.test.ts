import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { SETTLED, useExplorer } from './explorer-browser.ts';

const WIDE = { viewport: { width: 1400, height: 900 } } as const;
const NARROW = { viewport: { width: 320, height: 700 } } as const;
/** Viewport of a small phone. */
const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true } as const;
const AXE = createRequire(import.meta.url).resolve('axe-core');
const AVATAR = '#/avatars/6/kl12.webp?size=512';

const { visit } = await useExplorer({});

test.each([
  ['light', WIDE],
  ['dark', WIDE],
  ['dark', PHONE],
  ['light', NARROW],
] as const)(
  'every view passes axe without horizontal scrolling, in the %s scheme at %j',
  async (colorScheme, options) => {
    for (const hash of [AVATAR, '#/avatars/06/no!.webp?size=63', '#sheet']) {
      const { page } = await visit({ ...options, colorScheme, bypassCSP: true }, hash);
      const first = hash === '#sheet' ? '#sheet a' : SETTLED;
      await page.locator(first).first().waitFor();
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      expect(background).toBe(colorScheme === 'dark' ? 'rgb(21, 20, 19)' : 'rgb(247, 245, 241)');
      if (hash === AVATAR) {
        // Picture, URL and size in bytes are visible without scrolling.
        for (const part of options === NARROW ? [] : ['#url', '#stage img', '#stage .weight']) {
          const box = await page.locator(part).boundingBox();
          expect((box?.y ?? Number.NaN) + (box?.height ?? 0)).toBeLessThan(options.viewport.height);
        }
        await page.getByRole('button', { name: 'Compare' }).click();
        await page.locator('#compare').scrollIntoViewIfNeeded();
        await page.getByLabel('8×').check({ force: true });
      }
      await page.addScriptTag({ path: AXE });
      const { violations, overflowPx } = await page.evaluate(async () => {
        const { axe } = globalThis as unknown as {
          axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
        };
        const found = (await axe.run()).violations;
        const { scrollWidth, clientWidth } = document.documentElement;
        return {
          violations: found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`)),
          overflowPx: scrollWidth - clientWidth,
        };
      });
      expect({ violations, overflowPx }, hash).toEqual({ violations: [], overflowPx: 0 });
    }
  },
);

test.each([1_440, 1_280, 1_100, 390])('the facts fit below the picture at %d px', async (width) => {
  const { page } = await visit({ viewport: { width, height: 800 } }, AVATAR);
  await page.locator('#stage img').waitFor();
  const edges = await page.locator('#strip').evaluate((strip) => ({
    last: strip.lastElementChild?.getBoundingClientRect().right ?? Number.NaN,
    all: strip.getBoundingClientRect().right,
  }));
  expect(edges.last).toBeLessThan(edges.all + 1);
});

test('every focused element has a visible outline', async () => {
  const { page } = await visit(WIDE, AVATAR);
  await page.locator('#stage img').waitFor();
  const seen: string[] = [];
  for (let tabs = 0; tabs < 200; tabs += 1) {
    await page.keyboard.press('Tab');
    const found = await page.evaluate(() => {
      const at = document.activeElement;
      if (at === null || at === document.body) return undefined;
      // A slider's outline is on its thumb, whose style is not accessible to scripts.
      const isSlider = at.getAttribute('type') === 'range';
      const ringed = [at, at.firstElementChild, at.nextElementSibling];
      const hasRing =
        isSlider || ringed.some((each) => each && getComputedStyle(each).outlineStyle !== 'none');
      const name = at.getAttribute('name') ?? at.getAttribute('aria-label') ?? at.textContent ?? '';
      return { name, hasRing };
    });
    if (found === undefined) break;
    expect(found.hasRing, found.name).toBe(true);
    seen.push(found.name);
  }
  const fields = [
    'search',
    'only-kind',
    'copy-as',
    'url',
    'mask',
    'kind',
    'size',
    'ext',
    'animated',
    'ladder',
  ];
  const actions = ['Open', 'Download', 'Fetch again', 'Measure all widths', 'Compare'];
  expect(seen).toEqual(expect.arrayContaining([...fields, ...actions]));
});

test('a video has a player and a download, but no HTML', async () => {
  const { page } = await visit(WIDE, '#/attachments/1/1/country-lane.jpg?width=64');
  await page.getByRole('radio', { name: 'HTML', disabled: false }).check({ force: true });
  await page.locator('#sheet a[aria-label^="attachment 1 / 15 / clip.mp4"]').click();
  await page.locator('#stage video').waitFor();
  await page.getByRole('radio', { name: 'HTML', disabled: true }).waitFor();
  await expect
    .poll(() => page.getByRole('textbox', { name: 'URL', exact: true }).inputValue())
    .toContain('/clip.mp4');
  await page.getByRole('link', { name: 'Download', disabled: false }).waitFor();
});
