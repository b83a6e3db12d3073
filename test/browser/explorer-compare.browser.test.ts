import { describe, expect, test } from 'vitest';
import { shareExplorer } from './explorer-browser.ts';

const { visit } = shareExplorer();

describe('the comparison', () => {
  test('compares two qualities, and the slider shows more of the one or the other', async () => {
    const { page, complaints } = await visit({}, '#/avatars/5/ij90.webp?size=320');
    await page.locator('#compare').scrollIntoViewIfNeeded();
    await page.locator('.pair').waitFor();
    const notes = () => page.locator('#compare .note').allTextContents();
    await expect
      .poll(notes)
      .toEqual([expect.stringMatching(/kB$/), expect.stringMatching(/^[\d.]+ kB, \d+ % of it$/)]);
    const clip = () =>
      page.locator('.pair .right').evaluate((right) => getComputedStyle(right).clipPath);
    expect(await clip()).toBe('inset(0px 0px 0px 50%)');
    await page.locator('.pair input').focus();
    for (let steps = 0; steps < 20; steps += 1) await page.keyboard.press('ArrowLeft');
    expect(await clip()).toBe('inset(0px 0px 0px 30%)');
    const box = await page.locator('.pair').boundingBox();
    if (box === null) throw new Error('there is no picture');
    await page.mouse.click(box.x + box.width * 0.8, box.y + box.height / 3);
    const divider = await page.locator('.divider').boundingBox();
    expect(Math.abs((divider?.x ?? 0) + 1 - (box.x + box.width * 0.8))).toBeLessThan(4);
    const before = await notes();
    await page.locator('#compare select').last().selectOption('high');
    await expect.poll(async () => (await notes())[1]).not.toBe(before[1]);
    expect(complaints).toEqual([]);
  });

  test('has any two of format, quality and size, with bytes and time below each', async () => {
    const { page, complaints } = await visit({}, '#/avatars/5/ij90.webp?size=320');
    await page.locator('#compare').scrollIntoViewIfNeeded();
    await page.locator('.pair').waitFor();
    const asked: string[] = [];
    page.on('request', (request) =>
      asked.push(new URL(request.url()).pathname + new URL(request.url()).search),
    );
    await page.getByLabel('Format on the left').selectOption('png');
    await page.getByLabel('Size on the right').selectOption('64');
    await page.getByLabel('Quality on the right').selectOption('high');
    const took = () => page.locator('#compare .took').allTextContents();
    await expect
      .poll(took)
      .toEqual([
        expect.stringMatching(/^[\d.]+ ms, 320 × 240 px$/),
        expect.stringMatching(/^[\d.]+ ms, 64 × 48 px$/),
      ]);
    expect(asked).toContain('/avatars/5/ij90.png?size=320');
    expect(asked).toContain('/avatars/5/ij90.webp?size=64');
    const notes = await page.locator('#compare .note').allTextContents();
    expect(notes).toEqual([expect.stringMatching(/B$/), expect.stringMatching(/% of it$/)]);
    expect(complaints).toEqual([]);
  });

  test('is seen pixel for pixel and up to eight times as large, both moved in step', async () => {
    const { page, complaints } = await visit(
      { viewport: { width: 1400, height: 900 } },
      '#/avatars/5/ij90.webp?size=320',
    );
    await page.locator('#compare').scrollIntoViewIfNeeded();
    await page.locator('.pair').waitFor();
    const boxes = () =>
      page.locator('.pair img').evaluateAll((pictures) =>
        pictures.map((picture) => {
          const { x, y, width } = picture.getBoundingClientRect();
          return { x, y, width };
        }),
      );
    await page.getByLabel('1:1').check({ force: true });
    expect((await boxes()).map(({ width }) => width)).toEqual([320, 320]);
    await page.getByLabel('8×').check({ force: true });
    const view = page.getByRole('group', { name: 'the arrow keys move them' });
    await view.focus();
    const [before, other] = await boxes();
    expect(before?.width).toBe(2560);
    expect(other).toEqual(before);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    const step = { ...before, x: (before?.x ?? 0) - 48, y: (before?.y ?? 0) - 48 };
    await expect.poll(boxes).toEqual([step, step]);
    const box = await view.boundingBox();
    const [x, y] = [(box?.x ?? 0) + 60, (box?.y ?? 0) + 60];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 30, y + 20);
    await page.mouse.up();
    const dragged = { ...before, x: step.x + 30, y: step.y + 20 };
    await expect.poll(boxes).toEqual([dragged, dragged]);
    // No farther than to the edge, and back to where all is seen.
    for (let steps = 0; steps < 60; steps += 1) await view.press('ArrowLeft');
    await expect.poll(async () => (await boxes())[0]?.x).toBeCloseTo(box?.x ?? 0, 0);
    await page.getByLabel('Fit').check({ force: true });
    expect((await boxes()).map(({ width }) => width)).toEqual([320, 320]);
    expect(complaints).toEqual([]);
  });
});
