import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { measureContrast } from './contrast.ts';
import {
  type ExplorerBrowser,
  startExplorerBrowser,
  type WatchedPage,
} from './explorer-browser.ts';

const AVATAR = '#/avatars/6/kl12.webp?size=512';
const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true } as const;

let explorer: ExplorerBrowser;
let open: readonly WatchedPage[] = [];

beforeAll(async () => {
  explorer = await startExplorerBrowser();
});
afterAll(() => explorer.close());
afterEach(async () => {
  await Promise.all(open.map(({ page }) => page.context().close()));
  open = [];
});

const visit: ExplorerBrowser['open'] = async (options, hash) => {
  const watched = await explorer.open(options, hash);
  open = [...open, watched];
  return watched;
};

/** A fact of what came back. */
const fact = (page: Page, name: string) => page.locator(`#response .${name} .value`);
const textOf = (page: Page, name: string) => fact(page, name).textContent();
/** Waits until the response to this address is shown. */
const settle = async (page: Page, target: string): Promise<void> => {
  await page.waitForFunction(
    (end) => document.querySelector<HTMLTextAreaElement>('#url')?.value.endsWith(end),
    target,
  );
  await page.locator('#stage:not([aria-busy])').waitFor();
};

describe('the explorer in a browser', () => {
  test('shows the originals by kind, and the first of them, without a complaint', async () => {
    const { page, complaints } = await visit();
    await page.locator('#stage img').waitFor();
    const kinds = await page.locator('#sheet h2').allTextContents();
    expect(kinds.map((text) => text.replace(/\d+$/, ''))).toEqual([
      ...['Avatars', 'Icons', 'Banners', 'Splashes', 'Embed splashes', 'Emojis', 'Stickers'],
      ...['Members’ avatars', 'Members’ banners', 'Attachments', 'Default avatars'],
    ]);
    expect(await page.locator('#sheet section').first().locator('a').count()).toBe(12);
    expect(await page.locator('#original').textContent()).toBe('ab12');
    // All of the sheet, so that every frame is asked for.
    for (const frame of await page.locator('#sheet img').all())
      await frame.scrollIntoViewIfNeeded();
    await page.waitForFunction(() =>
      [...document.querySelectorAll<HTMLImageElement>('#sheet img')].every(
        (each) => each.naturalWidth > 0,
      ),
    );
    expect(complaints).toEqual([]);
  });

  test('is used by keys alone: to pick, to change, to read what came back', async () => {
    const { page, complaints } = await visit();
    await page.locator('#stage img').waitFor();
    // To the first frame, one to the right, one down, and in.
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
    for (let tabs = 0; tabs < 10 && !(await focused())?.startsWith('user avatar'); tabs += 1) {
      await page.keyboard.press('Tab');
    }
    expect(await focused()).toMatch(/^user avatar 1 \/ ab12/);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toMatch(/^user avatar 6 \/ kl12/);
    await page.keyboard.press('Enter');
    await settle(page, '/avatars/6/kl12.webp?size=512');
    expect(await textOf(page, 'status')).toBe('200');
    expect(await textOf(page, 'dimensions')).toBe('512 × 512');

    await page.locator('select[name=size]').focus();
    await page.keyboard.press('Home'); // from there on, the first that begins so
    await page.keyboard.type('64');
    await settle(page, '/avatars/6/kl12.webp?size=64');
    expect(await textOf(page, 'dimensions')).toBe('64 × 64');
    await page.locator('input[name=ext]:checked').focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowLeft');
    await settle(page, '/avatars/6/kl12.png?size=64');

    const target = '/avatars/6/kl12.png?size=64';
    const response = await fetch(explorer.service.origin + target);
    const bytes = (await response.arrayBuffer()).byteLength;
    expect(await textOf(page, 'type')).toBe('image/png');
    expect(await page.locator('#response .bytes').getAttribute('title')).toBe(
      `${bytes.toLocaleString('en')} bytes`,
    );
    expect(await page.locator('#response .bytes .note').textContent()).toBe(
      `${Math.round((100 * bytes) / 32_386)} % of the original`,
    );
    expect(await textOf(page, 'cache-status')).toBe('darkroom; fwd=miss; stored');
    expect(await textOf(page, 'server-timing')).toMatch(/render \d+/);
    expect(await page.getByRole('textbox', { name: 'URL' }).inputValue()).toBe(
      explorer.service.origin + target,
    );
    expect(await page.locator('#curl code').textContent()).toBe(
      `curl -sS -D - -o response.png '${explorer.service.origin}${target}'`,
    );
    expect(complaints).toEqual([]);
  });

  test('has an address per picture, which can be opened and gone back to', async () => {
    const { page } = await visit({}, AVATAR);
    await settle(page, AVATAR.slice(1));
    await page.locator('#sheet a[aria-label^="custom emoji 3,"]').click();
    await settle(page, '/emojis/3.webp?size=512');
    expect(await page.locator('#sheet a[aria-current]').getAttribute('aria-label')).toMatch(
      /emoji 3/,
    );
    await page.goBack();
    await settle(page, AVATAR.slice(1));
    expect(await page.locator('#original').textContent()).toBe('kl12');
  });

  test('copies the exact URL', async () => {
    const { page } = await visit({ permissions: ['clipboard-read', 'clipboard-write'] }, AVATAR);
    await settle(page, AVATAR.slice(1));
    await page.getByRole('button', { name: 'Copy the URL' }).click();
    await page.getByRole('status').filter({ hasText: 'URL copied' }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toBe(explorer.service.origin + AVATAR.slice(1));
  });

  test('shows an error as the API gives it', async () => {
    const { page, complaints } = await visit({}, AVATAR);
    await settle(page, AVATAR.slice(1));
    await page.locator('input[name=user_id]').fill('06');
    await page.locator('input[name=avatar_hash]').fill('no!');
    await page.locator('.fault').waitFor();
    const { status, code, errors } = await fetch(
      `${explorer.service.origin}/avatars/06/no!.webp?size=512`,
    ).then(async (response) => ({ status: response.status, ...(await response.json()) }));
    expect([status, code]).toEqual([400, 'INVALID_FORM_BODY']);
    expect(await page.locator('.fault .status').textContent()).toBe('400');
    expect(await page.locator('.fault .code').textContent()).toBe(code);
    expect(await page.locator('.fault li').allTextContents()).toEqual(
      errors.map(({ path, message }: { path: string; message: string }) => `${path} ${message}`),
    );
    await page.locator('input[name=user_id]').fill('6');
    await page.locator('input[name=avatar_hash]').fill('nobodys');
    await page.getByText('UNKNOWN_MEDIA').first().waitFor();
    expect(await textOf(page, 'status')).toBe('404');
    // The browser reports every such response to the console, and nothing else.
    expect(
      complaints.every((each) => /the server responded with a status of 40[04]/.test(each)),
    ).toBe(true);
  });

  test('tells of a file that is no picture, and asks for none of it', async () => {
    const { page, complaints } = await visit({}, '#/attachments/1/15/clip.mp4');
    await page.locator('.file').waitFor();
    expect(await textOf(page, 'type')).toBe('video/mp4');
    expect(await page.locator('#response .bytes .note').textContent()).toBe(
      '100 % of the original',
    );
    await page.locator('#ladder-section').waitFor({ state: 'hidden' });
    await page.locator('#compare-section').waitFor({ state: 'hidden' });
    expect(complaints).toEqual([]);
  });

  test('follows the kind: other parts, other parameters', async () => {
    const { page } = await visit({}, '#/attachments/1/1/country-lane.jpg?width=640');
    await settle(page, '?width=640');
    const names = () => page.locator('#controls .name').allTextContents();
    const common = ['quality', 'animated'];
    expect(await names()).toEqual([
      ...[
        'kind',
        'channel_id',
        'attachment_id',
        'filename',
        'width',
        'height',
        'format',
        ...common,
      ],
    ]);
    await page.locator('input[name=width]').fill('200');
    await page.locator('input[name=height]').fill('200');
    await page.locator('input[name=format][value=webp]').check({ force: true });
    await settle(page, '?width=200&height=200&format=webp');
    expect(await textOf(page, 'dimensions')).toBe('200 × 200');
    await page.locator('select[name=kind]').selectOption('default avatar');
    expect(await names()).toEqual(['kind', 'index', 'ext']);
    await page.locator('input[name=index]').fill('3');
    await settle(page, '/avatars/3.png');
    expect(await textOf(page, 'dimensions')).toBe('256 × 256');
  });

  test('measures all widths, tells where the original ends, and takes one from the chart', async () => {
    const { page, complaints } = await visit({}, '#/avatars/5/ij90.webp?size=256');
    await settle(page, '?size=256');
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
      (
        await (
          await fetch(`${explorer.service.origin}/avatars/5/ij90.webp?size=${size}`)
        ).arrayBuffer()
      ).byteLength;
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
    await settle(page, '?size=256');
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

  test('shows the picture that was asked for last, however long an older one takes', async () => {
    const { page, complaints } = await visit({}, '#/avatars/6/kl12.webp?size=256');
    await settle(page, '?size=256');
    await page.evaluate(() => {
      const { decode } = HTMLImageElement.prototype;
      HTMLImageElement.prototype.decode = async function slowly(this: HTMLImageElement) {
        const isSlow = this.alt.startsWith('512 ');
        if (isSlow) {
          document.body.dataset.late = 'waiting';
          await new Promise((resolve) => addEventListener('go on', resolve, { once: true }));
        }
        await decode.call(this);
        if (isSlow) document.body.dataset.late = 'decoded';
      };
      location.hash = '#/avatars/6/kl12.webp?size=512';
    });
    await page.locator('body[data-late=waiting]').waitFor();
    await page.evaluate(() => {
      location.hash = '#/avatars/6/kl12.webp?size=64';
    });
    await settle(page, '?size=64');
    const seen = () => page.locator('#stage img').getAttribute('alt');
    expect(await seen()).toBe('64 × 64 pixels');
    await page.evaluate(() => dispatchEvent(new Event('go on')));
    await page.locator('body[data-late=decoded]').waitFor();
    expect(await seen()).toBe('64 × 64 pixels');
    expect(await page.locator('#stage img').count()).toBe(1);
    expect(await textOf(page, 'dimensions')).toBe('64 × 64');

    // And an older one does not end the wait for a newer one.
    await page.evaluate(() => {
      delete document.body.dataset.late;
      location.hash = '#/avatars/6/kl12.webp?size=512';
    });
    await page.locator('body[data-late=waiting]').waitFor();
    let respond = () => {};
    const held = new Promise<void>((resolve) => {
      respond = resolve;
    });
    await page.route(/kl12\.webp\?size=32$/, async (route) => {
      await held;
      await route.continue();
    });
    await page.evaluate(() => {
      location.hash = '#/avatars/6/kl12.webp?size=32';
    });
    await expect.poll(() => page.locator('#url').inputValue()).toMatch(/size=32$/);
    await page.evaluate(() => dispatchEvent(new Event('go on')));
    await page.locator('body[data-late=decoded]').waitFor();
    expect(await page.locator('#stage').getAttribute('aria-busy')).toBe('true');
    expect(await seen()).toBe('64 × 64 pixels');
    respond();
    await settle(page, '?size=32');
    expect(await seen()).toBe('32 × 32 pixels');
    expect(complaints).toEqual([]);
  });

  test.each([
    { status: 200, contentType: 'text/html', body: '<p>Down</p>', code: 'HTTP 200' },
    { status: 502, contentType: 'text/html', body: '<p>Down</p>', code: 'HTTP 502' },
    { status: 502, contentType: 'application/json', body: '{}', code: 'HTTP 502' },
    { status: 200, contentType: 'application/json', body: 'null', code: 'HTTP 200' },
  ])('lives without a list of originals: $status with $body', async ({ code, ...response }) => {
    const { page, complaints } = await visit({}, AVATAR);
    await page.route('**/explorer/originals.json', (route) => route.fulfill(response));
    await page.reload();
    await page.getByText('The originals cannot be listed').waitFor();
    expect(await page.locator('#sheet .notice code').textContent()).toBe(code);
    await settle(page, AVATAR.slice(1));
    expect(await textOf(page, 'dimensions')).toBe('512 × 512');
    await page.locator('select[name=size]').selectOption('64');
    await settle(page, '/avatars/6/kl12.webp?size=64');
    expect(await textOf(page, 'dimensions')).toBe('64 × 64');
    expect(complaints.filter((each) => each.startsWith('script:'))).toEqual([]);
  });

  test('copies no line that does more than ask', async () => {
    const { page } = await visit({}, '#/avatars/6/kl12.x;reboot?size=64');
    await page.locator('.fault').waitFor();
    expect(await page.locator('#curl code').textContent()).toBe(
      `curl -sS -D - -o response '${explorer.service.origin}/avatars/6/kl12.x%3Breboot?size=64'`,
    );
  });

  test('compares two qualities, and the slider shows more of the one or the other', async () => {
    const { page, complaints } = await visit({}, '#/avatars/5/ij90.webp?size=320');
    await settle(page, '?size=320');
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

  test('fits a phone: the sheet, then the picture, and nothing beside the screen', async () => {
    const { page, complaints } = await visit(PHONE);
    await page.locator('#sheet a').first().waitFor();
    const overflow = () =>
      page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
    await page.locator('#bench').waitFor({ state: 'hidden' });
    expect(await overflow()).toBe(0);
    await page.locator('#sheet a[aria-label^="guild banner 1"]').first().tap();
    await page.locator('#stage img').waitFor();
    await page.locator('#sheet').waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Measure 31 widths' }).tap();
    await page.getByText('the original is').waitFor();
    await page.locator('#compare').scrollIntoViewIfNeeded();
    await page.locator('.pair').waitFor();
    expect(await overflow()).toBe(0);
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

  test('takes the theme that is chosen, and keeps it', async () => {
    const { page } = await visit({ colorScheme: 'light' });
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.getByLabel('Dark', { exact: true }).check({ force: true });
    expect(await ground()).not.toBe(light);
    await page.reload();
    expect(await ground()).not.toBe(light);
    await page.getByLabel('Auto', { exact: true }).check({ force: true });
    expect(await ground()).toBe(light);
  });

  test('says what it is without scripts', async () => {
    const { page } = await visit({ javaScriptEnabled: false });
    const text = await page.locator('noscript').innerText();
    expect(text).toContain('The explorer of a Darkroom');
    expect(text).toContain('needs JavaScript');
    await page.locator('main').waitFor({ state: 'hidden' });
    await page.getByRole('link', { name: '/avatars/0.png' }).click();
    expect(page.url()).toBe(`${explorer.service.origin}/avatars/0.png`);
  });

  test('is watched: what the policy forbids is complained of', async () => {
    const { page, complaints } = await visit();
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'document.title = "run"';
      document.body.append(script);
      return fetch('http://192.0.2.1/').catch(() => undefined);
    });
    expect(await page.title()).not.toBe('run');
    await expect.poll(() => complaints.join()).toMatch(/Content Security Policy.*script/s);
    await expect.poll(() => complaints.join()).toMatch(/connect-src/);
  });
});
