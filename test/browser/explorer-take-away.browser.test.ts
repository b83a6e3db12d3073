import { describe, expect, test } from 'vitest';
import { shareExplorer } from './explorer-browser.ts';

const AVATAR = '#/avatars/6/kl12.webp?size=512';

const { service, visit } = shareExplorer();

describe('what is taken along', () => {
  test('copies the exact URL', async () => {
    const { page } = await visit({ permissions: ['clipboard-read', 'clipboard-write'] }, AVATAR);
    await page.getByRole('button', { name: 'Copy the URL' }).click();
    await page.getByRole('status').filter({ hasText: 'URL copied' }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toBe(service().origin + AVATAR.slice(1));
  });

  test('copies no line that does more than ask', async () => {
    const { page } = await visit({}, '#/avatars/6/kl12.x;reboot?size=64');
    await page.locator('.fault').waitFor();
    expect(await page.locator('#curl code').textContent()).toBe(
      `curl -sS -D - -o response '${service().origin}/avatars/6/kl12.x%3Breboot?size=64'`,
    );
  });

  test.each([
    ['Copy srcset', /^<img src="(.*?)" srcset="\1 1x, .*\?size=1024 2x" width="512" height="512"/],
    ['Copy Markdown', /^!\[kl12\]\(http.*\?size=512\)$/],
    ['Copy BBCode', /^\[img\]http.*\?size=512\[\/img\]$/],
  ])('can be pasted, and is announced: %s', async (name, pattern) => {
    const { page } = await visit({ permissions: ['clipboard-read', 'clipboard-write'] }, AVATAR);
    await page.getByRole('button', { name }).click();
    const what = name.replace('Copy ', '');
    await page
      .getByRole('status')
      .filter({ hasText: `${what} copied` })
      .waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(pattern);
  });

  test('is copied where the clipboard is not given, too', async () => {
    const { page } = await visit({}, AVATAR);
    await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
    await page.getByRole('button', { name: 'Copy BBCode' }).click();
    await page.getByRole('status').filter({ hasText: 'BBCode copied' }).waitFor();
  });

  test('is opened, and saved under its own name', async () => {
    const { page } = await visit({}, AVATAR);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('kl12.webp');
    const [opened] = await Promise.all([
      page.waitForEvent('popup'),
      page.getByRole('link', { name: 'Open' }).click(),
    ]);
    expect(opened.url()).toBe(service().origin + AVATAR.slice(1));
  });

  test('is beside what the original is, and what it weighs', async () => {
    const { page } = await visit({}, '#/avatars/2/cd34.webp?size=64');
    const facts = page.locator('#original-facts');
    await facts.getByText('gif').waitFor();
    expect((await facts.innerText()).replace(/\s+/g, ' ')).toBe(
      'Format gif Dimensions 128 × 128 Frames 10 Profile none Bytes 15.0 kB',
    );
    expect(await page.locator('#stage figcaption').innerText()).toMatch(
      /^[\d.]+ k?B, \d+ % of the original\s*64 × 64 px$/,
    );
    await page.locator('select[name=kind]').selectOption('default avatar');
    await expect.poll(() => facts.innerText()).toMatch(/png/);
  });

  test('says where it came from and what that took, and asks again', async () => {
    const { page } = await visit({}, '#/avatars/6/kl12.webp?size=44');
    await page.getByText('It was rendered just now.').waitFor();
    const bar = page.locator('#cost');
    expect(await bar.getAttribute('aria-label')).toMatch(
      /^Time: store [\d.]+ ms, (?:origin [\d.]+ ms, )?queue [\d.]+ ms, render [\d.]+ ms, the way here/,
    );
    const shares = await bar
      .locator('.part')
      .evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().width));
    const whole = await bar.evaluate((element) => element.getBoundingClientRect().width);
    expect(shares.length).toBeGreaterThan(3);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeGreaterThan(whole * 0.9);
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.getByText('It was there: a hit.').waitFor();
    expect(await bar.getAttribute('aria-label')).not.toContain('render');
  });
});
