import { describe, expect, test } from 'vitest';
import { settle, shareExplorer, textOf } from './explorer-browser.ts';

const AVATAR = '#/avatars/6/kl12.webp?size=512';

const { service, visit } = shareExplorer();

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
    const response = await fetch(service().origin + target);
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
      service().origin + target,
    );
    expect(await page.locator('#curl code').textContent()).toBe(
      `curl -sS -D - -o response.png '${service().origin}${target}'`,
    );
    expect(complaints).toEqual([]);
  });

  test('has an address per picture, which can be opened and gone back to', async () => {
    const { page } = await visit({}, AVATAR);
    await page.locator('#sheet a[aria-label^="custom emoji 3,"]').click();
    await settle(page, '/emojis/3.webp?size=512');
    expect(await page.locator('#sheet a[aria-current]').getAttribute('aria-label')).toMatch(
      /emoji 3/,
    );
    await page.goBack();
    await settle(page, AVATAR.slice(1));
    expect(await page.locator('#original').textContent()).toBe('kl12');
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

  test('shows the picture that was asked for last, however long an older one takes', async () => {
    const { page, complaints } = await visit({}, '#/avatars/6/kl12.webp?size=256');
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
    expect(page.url()).toBe(`${service().origin}/avatars/0.png`);
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
