import { describe, expect, test } from 'vitest';
import { settle, shareExplorer } from './explorer-browser.ts';

const { service, visit } = shareExplorer();

describe('the size ladder', () => {
  test('measures all widths, tells where the original ends, and takes one from the chart', async () => {
    const { page, complaints } = await visit({}, '#/avatars/5/ij90.webp?size=256');
    await page.getByRole('button', { name: 'Measure 31 widths' }).click();
    await page.getByText('the original is 320 px wide').waitFor();
    const rungs = page.locator('#ladder label');
    expect(await rungs.count()).toBe(31);
    // 320 is its own width; the ten beyond are the same picture.
    expect(await page.locator('#ladder .is-original').count()).toBe(10);
    const heights = await page
      .locator('#ladder .fill')
      .evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().height));
    expect(heights.at(0)).toBeLessThan(10);
    expect(heights.at(-1)).toBeGreaterThan(100);
    const bytesOf = async (size: number) =>
      (await (await fetch(`${service().origin}/avatars/5/ij90.webp?size=${size}`)).arrayBuffer())
        .byteLength;
    const part = (await bytesOf(100)) / (await bytesOf(4096));
    const drawn = (heights[13] ?? 0) / (heights.at(-1) ?? 1);
    expect(Math.abs(drawn - part)).toBeLessThan(0.02);
    await page.locator('#ladder input[value="256"]').focus();
    await page.keyboard.press('ArrowLeft');
    await settle(page, '?size=240');
    expect(complaints).toEqual([]);
  });

  test('asks again for a width that was refused, and for no other', async () => {
    const { page } = await visit({}, '#/avatars/5/ij90.webp?size=256');
    await page.route(
      /ij90\.webp\?size=100$/,
      (route) =>
        route.fulfill({
          status: 503,
          contentType: 'application/json',
          body: JSON.stringify({ code: 'OVERLOADED', message: 'Later.' }),
        }),
      { times: 1 },
    );
    const measure = page.locator('#measure');
    await measure.click();
    await page.getByText('30 of 31').waitFor();
    await page.locator('#measure:not([disabled])').waitFor();
    const asked: string[] = [];
    page.on('request', (request) => {
      // Those of the comparison have a quality, too.
      const size = /ij90\.webp\?size=(\d+)$/.exec(request.url())?.[1];
      if (size !== undefined) asked.push(size);
    });
    await measure.click();
    await page.getByText('the original is 320 px wide').waitFor();
    expect(asked).toEqual(['100']);
    expect(await measure.isVisible()).toBe(false);
  });
});
