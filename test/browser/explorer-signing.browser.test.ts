import { expect, test } from 'vitest';
import { settle, shareExplorer, textOf, urlLine } from './explorer-browser.ts';

const KEY = 'an-example-key-of-thirty-two-bytes-or-more';
const EXTERNAL =
  '/external/-tr41TTaeUQAml3n4juS1cw_XhDhYaBIPXQnzkoE8t8/v2/aHR0cHM6Ly9tZWRpYS5leGFtcGxlLm9yZy9hJTIwYi9jYXQucG5nP3c9MSZoPTI';

const { visit } = shareExplorer(() => ({
  ATTACHMENT_SIGNING: 'enforce',
  ATTACHMENT_SIGNING_KEYS: KEY,
  EXTERNAL_SIGNING_KEYS: KEY,
}));

test('an explorer with keys signs what is chosen and filled in, and leaves what is pasted', async () => {
  const { page } = await visit();
  await page.locator('#stage img').waitFor();
  const isShown = async (pattern: RegExp, status: string) => {
    await expect.poll(() => urlLine(page).inputValue()).toMatch(pattern);
    await expect.poll(() => textOf(page, 'status')).toBe(status);
    await page.locator('#stage:not([aria-busy])').waitFor();
  };
  await page.locator('select[name=kind]').selectOption('attachment');
  await isShown(/\?(?:.*&)?ex=[0-9a-f]{8}&is=[0-9a-f]{8}&hm=[0-9a-f]{64}$/, '200');
  await page.locator('input[name=quality][value=low]').check({ force: true });
  await isShown(/quality=low&ex=/, '200');
  await page.locator('input[name=attachment_id]').fill('12');
  await page.locator('input[name=filename]').fill('red-panda.jpg');
  await isShown(/\/12\/red-panda\.jpg\?.*hm=/, '200');
  await urlLine(page).fill('/attachments/1/12/red-panda.jpg?width=64');
  await isShown(/\?width=64$/, '404');

  await page.route('**/external/**', (route) => route.fulfill({ status: 502, body: '{}' }));
  await page.locator('select[name=kind]').selectOption('external media');
  const link = page.locator('input[name=link]');
  await link.fill('https://media.example.org/a%20b/cat.png?w=1&h=2');
  await settle(page, EXTERNAL);
  await page.locator('input[name=width]').fill('64');
  await settle(page, `${EXTERNAL}?width=64`);
  await link.fill('no url');
  await page.locator('input[name=link][aria-invalid=true]').waitFor();
  expect(await page.locator('#link-fault').textContent()).toContain('Expected the URL');
});
