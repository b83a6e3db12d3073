import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { defer } from '../support/deferred.ts';
import { enforced } from '../support/signed-urls.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { SETTLED, useExplorer } from './explorer-browser.ts';

/** More attachments than the page lists, in addition to the samples. */
const MANY = 1_500;

const { path: directory } = await useTemporaryDirectory();
cpSync('fixtures/originals', directory, { recursive: true });
mkdirSync(join(directory, 'attachments/9/9'), { recursive: true });
for (let number = 0; number < MANY; number += 1) {
  writeFileSync(join(directory, `attachments/9/9/note-${number}`), 'x');
}
const { service, visit } = await useExplorer({ STORAGE_DIR: directory, ...enforced });

const AVATAR = '#/avatars/6/kl12.webp?size=512';

const urlLine = (page: Page) => page.getByRole('textbox', { name: 'URL', exact: true });

/** Text of a property of the response. */
const textOf = (page: Page, name: string) =>
  page.locator(`:is(#strip, #response) .${name} .value`).textContent();

/** Waits until the page shows the response to this target. */
async function settle(page: Page, target: string): Promise<void> {
  await page.waitForFunction(
    (end) => document.querySelector<HTMLTextAreaElement>('#url')?.value.endsWith(end),
    target,
  );
  await page.locator(SETTLED).waitFor();
}

test('a visitor selects, changes, copies, measures and compares pictures', async () => {
  const permissions = ['clipboard-read', 'clipboard-write'];
  const { page, complaints } = await visit({ permissions, viewport: { width: 1400, height: 900 } });

  // The sheet lists a limited number of each kind; Enter selects an entry.
  await page.locator('#stage img').waitFor();
  expect(await page.locator('#original').textContent()).toBe('ab12');
  await page.locator('summary').getByText('1,000 listed, there are more').waitFor();
  // Searches cover only listed attachments.
  await page.getByRole('searchbox').fill('nothing-of-this-name');
  await page.getByText('No matches among those listed').waitFor();
  await page.getByLabel('Kinds shown').selectOption('user avatar');
  await page.getByText('No matches', { exact: true }).waitFor();
  await page.getByLabel('Kinds shown').selectOption('');
  await page.getByRole('searchbox').fill('');
  await page.locator('#sheet a[aria-label^="user avatar 6 / kl12"]').focus();
  await page.keyboard.press('Enter');
  await settle(page, AVATAR.slice(1));

  // Size, quality and format update the URL and the properties.
  await page.locator('select[name=size]').selectOption('64');
  await page.locator('input[name=quality][value=low]').check({ force: true });
  await settle(page, '/avatars/6/kl12.webp?size=64&quality=low');
  await page.locator('input[name=quality][value=high]').check({ force: true });
  await page.locator('input[name=ext][value=png]').check({ force: true });
  const target = '/avatars/6/kl12.png?size=64';
  const url = service.origin + target;
  await settle(page, target);
  expect([await textOf(page, 'content-type'), await textOf(page, 'dimensions')]).toEqual([
    ...['image/png', '64 × 64'],
  ]);
  expect(await textOf(page, 'cache-status')).toBe('darkroom; fwd=miss; stored');
  await page.getByText('rendered now').waitFor();
  expect(await page.locator('#cost').getAttribute('aria-label')).toMatch(/ render [\d.]+ ms/);
  await page.getByRole('button', { name: 'Fetch again' }).click();
  await expect.poll(() => textOf(page, 'cache')).toBe('hit');
  // PNG is never animated, and its lossless quality is the default.
  expect(await page.locator('input[name=animated]:disabled').count()).toBe(2);
  expect(await page.locator('input[name=quality]:disabled').count()).toBe(1);

  // Masks crop the picture like clients do.
  const clip = () => page.locator('#stage img').evaluate((each) => getComputedStyle(each).clipPath);
  for (const [name, clipPath] of [
    ['Circle', 'inset(0% round 50%)'],
    ['Rounded', 'inset(0% round 25%)'],
    ['No mask', 'none'],
  ] as const) {
    await page.getByLabel(name).check({ force: true });
    expect(await clip()).toBe(clipPath);
  }

  const copied = async (form: string) => {
    await page.getByRole('radio', { name: form, exact: true }).check({ force: true });
    await page.getByRole('button', { name: `Copy the ${form}` }).click();
    await page
      .getByRole('status')
      .filter({ hasText: `${form} copied` })
      .waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  expect(await copied('HTML')).toContain(`srcset="${url} 1x, ${url.replace('?size=64', '')} 2x"`);
  expect(await copied('curl')).toBe(`curl -sS -D - -o response.png '${url}'`);
  expect(await copied('URL')).toBe(url);
  const saving = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download' }).click();
  expect((await saving).suggestedFilename()).toBe('kl12.png');

  // Animations have a mark and are selected as animations; the browser's history works.
  await page.getByRole('searchbox').fill('mn34');
  const moving = page.locator('#sheet a[aria-label^="user avatar 7 "]');
  await moving.locator('.moves').waitFor();
  await moving.click();
  await settle(page, '/avatars/7/mn34.webp?size=512&animated=true');
  await page.goBack();
  await settle(page, target);
  await page.getByRole('searchbox').fill('');
  await page.getByLabel('Kinds shown').selectOption('user avatar');
  await page.getByText('12 found').waitFor();

  // The ladder shows the width of the original, and its bars select a width.
  await urlLine(page).fill('avatars/5/ij90');
  await page.locator('#stage img[alt^="128 "]').waitFor();
  await page.locator('select[name=size]').selectOption('256');
  await settle(page, '/avatars/5/ij90.webp?size=256');
  await page.getByRole('button', { name: 'Measure all widths' }).click();
  await page.getByText('the original is 320 px wide').waitFor();
  // The original is 320 px wide, so ten larger widths return the same picture.
  expect(await page.locator('#ladder .is-original').count()).toBe(10);
  await page.getByRole('radio', { name: '512 px (2×)' }).waitFor();
  await page.locator('#ladder input[value="256"]').focus();
  await page.keyboard.press('ArrowLeft');
  await settle(page, '/avatars/5/ij90.webp?size=240');

  // Two variants of format, quality and size move together.
  await page.getByRole('button', { name: 'Compare' }).click();
  await page.locator('#compare').scrollIntoViewIfNeeded();
  await page.locator('.pair').waitFor();
  const left = page.waitForRequest(/ij90\.png\?size=240$/);
  await page.getByLabel('Format on the left').selectOption('png');
  await left;
  await page.getByLabel('Size on the right').selectOption('64');
  const took = page.locator('#compare .took');
  await expect
    .poll(() => took.allTextContents())
    .toEqual([
      expect.stringMatching(/ms, 240 × 180 px$/),
      expect.stringMatching(/ms, 64 × 48 px$/),
    ]);
  expect(await page.locator('#compare .note').allTextContents()).toEqual([
    ...[expect.stringMatching(/B$/), expect.stringMatching(/% of it$/)],
  ]);
  await page.locator('.pair input').focus();
  await page.keyboard.press('ArrowLeft');
  const right = page.locator('.pair .right');
  expect(await right.evaluate((element) => getComputedStyle(element).clipPath)).toContain('49%');
  await page.getByLabel('8×').check({ force: true });
  const boxes = () =>
    page
      .locator('.pair img')
      .evaluateAll((pictures) => pictures.map((each) => each.getBoundingClientRect().x));
  const [before = 0] = await boxes();
  await page.getByRole('group', { name: 'the arrow keys move them' }).press('ArrowRight');
  await expect.poll(boxes).toEqual([before - 48, before - 48]);

  // The first original of every kind.
  const kind = page.locator('select[name=kind]');
  const kinds = await kind.locator('option').allTextContents();
  await page.getByLabel('Format on the left').selectOption(''); // stickers have no PNG
  for (const name of kinds.filter((each) => each !== 'external media')) {
    await kind.selectOption(name);
    await page.locator(SETTLED).waitFor();
    await expect.poll(() => textOf(page, 'status'), { message: name }).toBe('200');
  }
  await kind.selectOption('attachment');
  await expect.poll(() => urlLine(page).inputValue()).toMatch(/[?&]hm=\w{64}$/);
  expect(complaints).toEqual([]);
});

test('errors of a pasted URL appear next to their fields', async () => {
  const { page, complaints } = await visit({}, AVATAR);
  const target = '/avatars/06/no!.webp?size=63&quality=best&quality=low&animated=1';
  await urlLine(page).fill(target);
  await page.locator('.fault .status').waitFor();
  const { errors } = await (await fetch(service.origin + target)).json();
  expect(errors).toHaveLength(5);
  for (const { path, message } of errors) {
    const field = page.locator(`[name=${path}], [role=radiogroup]:has([name=${path}])`);
    const note = await field
      .and(page.locator('[aria-invalid=true]'))
      .getAttribute('aria-describedby');
    expect(await page.locator(`#${note}`).textContent(), path).toBe(message);
  }
  expect(await page.locator('[aria-invalid]').count()).toBe(5);
  // An error has no HTML and no download.
  const disabled = (role: 'radio' | 'link', name: string) =>
    page.getByRole(role, { name, exact: true, disabled: true }).waitFor();
  await disabled('radio', 'HTML');
  await disabled('link', 'Open');
  await disabled('link', 'Download');
  for (const [text, message] of [
    ['hello', 'Expected a URL of the contract'],
    ['/avatars/6/nobodys.webp', 'UNKNOWN_MEDIA'],
  ] as const) {
    await urlLine(page).fill(text);
    await expect.poll(() => page.locator('#url-fault').textContent()).toContain(message);
  }
  // The console contains each error response, and nothing else.
  const expected = complaints.map(() => expect.stringMatching(/responded with a status of 40[04]/));
  expect(complaints).toEqual(expected);
  expect(complaints).not.toEqual([]);
});

test('shows the latest requested picture, even if an older response arrives later', async () => {
  const { page, complaints } = await visit({}, '#/avatars/6/kl12.webp?size=256');
  const release = defer<void>();
  await page.route('**/kl12.webp?size=512', async (route) => {
    await release.promise;
    await route.continue();
  });
  const go = (width: number) =>
    page.evaluate((size) => {
      location.hash = `#/avatars/6/kl12.webp?size=${size}`;
    }, width);
  const request = page.waitForRequest('**/kl12.webp?size=512');
  await go(512);
  await request;
  await go(64);
  await settle(page, '?size=64');
  const late = page.waitForResponse('**/kl12.webp?size=512');
  release.resolve();
  await (await late).finished();
  await page.waitForTimeout(200);
  expect(await page.locator('#stage img').getAttribute('alt')).toBe('64 × 64 pixels');
  expect(await textOf(page, 'dimensions')).toBe('64 × 64');
  expect(complaints).toEqual([]);
});

test('frees the pictures of an outdated comparison', async () => {
  const { page, complaints } = await visit();
  await page.addInitScript(() => {
    const live = new Set<string>();
    const { createObjectURL, revokeObjectURL } = URL;
    URL.createObjectURL = (blob) => {
      const url = createObjectURL(blob);
      live.add(url);
      return url;
    };
    URL.revokeObjectURL = (url) => {
      live.delete(url);
      revokeObjectURL(url);
    };
    Object.assign(globalThis, {
      countUnshown: () =>
        [...live].filter((url) => document.querySelector(`img[src="${url}"]`) === null).length,
    });
  });
  await page.goto(`${service.origin}/#/avatars/6/kl12.webp?size=256`);
  await page.reload();
  await page.locator(SETTLED).waitFor();
  await page.getByRole('button', { name: 'Compare' }).click();
  await page.locator('#compare').scrollIntoViewIfNeeded();
  await page.locator('.pair').waitFor();
  const release = defer<void>();
  const held = /kl12\.webp\?(?=.*size=64\b)(?=.*quality=low)/;
  await page.route(held, async (route) => {
    await release.promise;
    await route.continue();
  });
  const request = page.waitForRequest(held);
  await page.getByLabel('Size on the right').selectOption('64');
  await request;
  await page.getByLabel('Size on the right').selectOption('128');
  const took = page.locator('#compare .took').last();
  await expect.poll(() => took.textContent()).toMatch(/128 × 128 px$/);
  const late = page.waitForResponse(held);
  release.resolve();
  await (await late).finished();
  await page.waitForTimeout(200);
  expect(await page.evaluate('countUnshown()')).toBe(0);
  expect(complaints).toEqual([]);
});

test('a narrow screen shows the picture first, and each kind as a strip', async () => {
  const { page } = await visit({ viewport: { width: 390, height: 844 } });
  await page.locator('#stage img').waitFor();
  expect(await page.locator('#sheet').isVisible()).toBe(false);
  await page.getByRole('link', { name: 'All originals' }).click();
  await page.locator('#sheet a').first().waitFor();
  const [kinds, screens] = await page.evaluate(() => [
    document.querySelectorAll('#sheet details').length,
    document.documentElement.scrollHeight / innerHeight,
  ]);
  expect(kinds).toBeGreaterThan(9);
  expect(screens).toBeLessThan(3);
});

test('works without the list of originals', async () => {
  const { page, complaints } = await visit({}, '#/avatars/5/ij90.webp?size=256');
  await page.route('**/explorer/originals.json', (route) =>
    route.fulfill({ status: 502, contentType: 'text/html', body: '<p>Down</p>' }),
  );
  await page.reload();
  await page.getByText('The originals cannot be listed').waitFor();
  expect(await page.locator('#sheet .notice code').textContent()).toBe('HTTP 502');
  await settle(page, '?size=256');
  expect(complaints.filter((each) => each.startsWith('script:'))).toEqual([]);
});
