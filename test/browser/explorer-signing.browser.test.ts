import { describe, expect, test } from 'vitest';
import { settle, shareExplorer, textOf, urlLine } from './explorer-browser.ts';

const KEY = 'an-example-key-of-thirty-two-bytes-or-more';

const { visit } = shareExplorer(() => ({
  ATTACHMENT_SIGNING: 'enforce',
  ATTACHMENT_SIGNING_KEYS: KEY,
  EXTERNAL_SIGNING_KEYS: KEY,
}));

const SIGNED = /\?(?:.*&)?ex=[0-9a-f]{8}&is=[0-9a-f]{8}&hm=[0-9a-f]{64}$/;

describe('an explorer that was asked for where keys are set', () => {
  test('shows attachments by signed URLs, whatever is changed of them', async () => {
    const { page, complaints } = await visit();
    await page.locator('#stage img').waitFor();
    await page.locator('select[name=kind]').selectOption('attachment');
    await expect.poll(() => urlLine(page).inputValue()).toMatch(SIGNED);
    await page.locator('#stage:not([aria-busy])').waitFor();
    expect(await textOf(page, 'status')).toBe('200');
    await page.locator('input[name=quality][value=low]').check({ force: true });
    await expect.poll(() => urlLine(page).inputValue()).toMatch(/quality=low&ex=/);
    await page.locator('#stage:not([aria-busy])').waitFor();
    expect(await textOf(page, 'status')).toBe('200');
    const frame = page.locator('#sheet a[aria-label*="red-panda.jpg"] img');
    await frame.scrollIntoViewIfNeeded();
    await expect
      .poll(() => frame.evaluate((img) => (img as HTMLImageElement).naturalWidth))
      .toBe(320);
    expect(complaints).toEqual([]);
  });

  test('signs what is put in its fields, and leaves a URL as it was pasted', async () => {
    const { page } = await visit({}, '#/attachments/1/12/red-panda.jpg?width=64');
    await expect.poll(() => urlLine(page).inputValue()).toMatch(SIGNED);
    await page.locator('#stage img').waitFor();
    await page.locator('input[name=attachment_id]').fill('1');
    await page.locator('input[name=filename]').fill('country-lane.jpg');
    await expect.poll(() => urlLine(page).inputValue()).toMatch(/\/1\/country-lane\.jpg\?.*hm=/);
    await page.locator('#stage:not([aria-busy])').waitFor();
    expect(await textOf(page, 'status')).toBe('200');
    await urlLine(page).fill('/attachments/1/12/red-panda.jpg?width=64');
    await page.locator('.fault').waitFor();
    expect(await textOf(page, 'status')).toBe('404');
  });

  test('goes to the path below which another site is shown', async () => {
    const { page } = await visit({}, '#/avatars/6/kl12.webp');
    await page.route('**/external/**', (route) => route.fulfill({ status: 502, body: '{}' }));
    const path =
      '/external/-tr41TTaeUQAml3n4juS1cw_XhDhYaBIPXQnzkoE8t8/v2/aHR0cHM6Ly9tZWRpYS5leGFtcGxlLm9yZy9hJTIwYi9jYXQucG5nP3c9MSZoPTI';
    await page.locator('select[name=kind]').selectOption('external media');
    await page.locator('input[name=link]').fill('https://media.example.org/a%20b/cat.png?w=1&h=2');
    await settle(page, path);
    await page.locator('input[name=width]').fill('64');
    await settle(page, `${path}?width=64`);
    await page.locator('input[name=link]').fill('no url');
    await page.locator('input[name=link][aria-invalid=true]').waitFor();
    expect(await page.locator('#link-fault').textContent()).toContain('Expected the URL');
    // The line of the URL takes it as well.
    await urlLine(page).fill('https://media.example.org/a%20b/cat.png?w=1&h=2');
    await urlLine(page).press('Enter');
    await settle(page, `${path}?width=64`);
  });
});
