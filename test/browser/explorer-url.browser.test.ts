import { describe, expect, test } from 'vitest';
import { settle, shareExplorer, textOf, urlLine } from './explorer-browser.ts';

const AVATAR = '#/avatars/6/kl12.webp?size=512';

const { service, visit } = shareExplorer();

describe('the URL and its fields', () => {
  test('shows an error as the API gives it', async () => {
    const { page, complaints } = await visit({}, AVATAR);
    await page.locator('input[name=user_id]').fill('06');
    await page.locator('input[name=avatar_hash]').fill('no!');
    await page.locator('.fault').waitFor();
    const { status, code, errors } = await fetch(
      `${service().origin}/avatars/06/no!.webp?size=512`,
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

  test('follows the kind: other parts, other parameters', async () => {
    const { page } = await visit({}, '#/attachments/1/1/country-lane.jpg?width=640');
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

  test('goes to the first original of another kind, or says what to put', async () => {
    const { page, complaints } = await visit({}, AVATAR);
    const kinds = await page.locator('select[name=kind] option').allTextContents();
    const [status, kind] = [() => textOf(page, 'status'), page.locator('select[name=kind]')];
    for (const name of kinds.filter((each) => each !== 'external media')) {
      await kind.selectOption(name);
      await page.locator(`#sheet a[aria-current][aria-label^="${name} "]`).waitFor();
      await page.locator('#stage:not([aria-busy])').waitFor();
      expect(await status(), name).toBe('200');
    }
    await kind.selectOption('external media');
    await page.getByText('No external media is in the list').waitFor();
    expect(await page.locator('#stage').innerText()).toContain('signature and target');
    expect(await page.locator('#response dd').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test.each([
    ['https://cdn.example/avatars/7/mn34.gif?size=64&quality=low', '64', 'gif', 'low'],
    ['/avatars/7/mn34.jpeg', '128', 'jpg', 'high'],
    ['avatars/7/mn34', '128', 'webp', 'high'],
  ])('follows what is pasted: %s', async (text, size, ext, quality) => {
    const { page, complaints } = await visit({}, AVATAR);
    await urlLine(page).fill(text);
    await expect.poll(() => page.locator('input[name=avatar_hash]').inputValue()).toBe('mn34');
    expect(await page.locator('input[name=user_id]').inputValue()).toBe('7');
    expect(await page.locator('select[name=size]').inputValue()).toBe(size);
    expect(await page.locator('input[name=ext]:checked').inputValue()).toBe(ext);
    expect(await page.locator('input[name=quality]:checked').inputValue()).toBe(quality);
    await page.locator(`#stage img[alt^="${size} "]`).waitFor();
    // What was put stays there until a control is changed.
    expect(await urlLine(page).inputValue()).toBe(text);
    await page.locator('select[name=size]').selectOption('32');
    await expect.poll(() => urlLine(page).inputValue()).toMatch(/\/avatars\/7\/mn34\.\w+\?size=32/);
    expect(complaints).toEqual([]);
  });

  test('asks for what is pasted to the letter, and shows the faults of the API at its fields', async () => {
    const { page } = await visit({}, AVATAR);
    await urlLine(page).fill('/avatars/06/no!.webp?size=63&quality=best&quality=low&animated=1');
    await page.locator('.fault .status').waitFor();
    const response = await fetch(
      `${service().origin}/avatars/06/no!.webp?size=63&quality=best&quality=low&animated=1`,
    );
    const { errors } = await response.json();
    expect(errors).toHaveLength(5);
    for (const { path, message } of errors) {
      const field = page.locator(`[name=${path}], [role=radiogroup]:has([name=${path}])`);
      const invalid = field.and(page.locator('[aria-invalid=true]'));
      const note = await invalid.getAttribute('aria-describedby');
      expect(await page.locator(`#${note}`).textContent(), path).toBe(message);
    }
    expect(await page.locator('[aria-invalid]').count()).toBe(5);
    await page.locator('input[name=user_id]').fill('6');
    await page.locator('input[name=avatar_hash]').fill('kl12');
    await page.locator('select[name=size]').selectOption('64');
    await page.locator('input[name=quality][value=low]').check({ force: true });
    await page.locator('input[name=animated][value=false]').check({ force: true });
    await settle(page, '/avatars/6/kl12.webp?size=64&quality=low');
    expect(await page.locator('[aria-invalid]').count()).toBe(0);
  });

  test.each([
    ['hello', 'Expected a URL of the contract'],
    ['/external/abc/https/example.org/cat.png', 'NOT_FOUND'],
    ['/avatars/6/nobodys.webp', 'UNKNOWN_MEDIA'],
  ])('says at the line what no field is to blame for: %s', async (text, message) => {
    const { page } = await visit({}, AVATAR);
    await urlLine(page).fill(text);
    await page.locator('#url[aria-invalid=true]').waitFor();
    expect(await urlLine(page).getAttribute('aria-describedby')).toBe('url-fault');
    expect(await page.locator('#url-fault').textContent()).toContain(message);
  });

  test('offers nothing twice, and nothing that has no effect', async () => {
    const { page } = await visit({}, '#/avatars/7/mn34.webp?size=64&animated=true');
    const words = (name: string) =>
      page
        .locator(`input[name=${name}]`)
        .evaluateAll((inputs) => inputs.map((input) => (input as HTMLInputElement).value));
    const off = (name: string) =>
      page
        .locator(`input[name=${name}]:disabled`)
        .evaluateAll((inputs) => inputs.map((input) => (input as HTMLInputElement).value));
    expect(await words('ext')).toEqual(['png', 'jpg', 'webp', 'gif']);
    expect([await off('animated'), await off('quality')]).toEqual([[], []]);
    await page.locator('input[name=ext][value=png]').check({ force: true });
    await settle(page, '/avatars/7/mn34.png?size=64');
    expect([await off('animated'), await off('quality')]).toEqual([
      ['true', 'false'],
      ['lossless'],
    ]);
    await page.locator('input[name=ext][value=webp]').check({ force: true });
    await settle(page, '?size=64&animated=true');
    await page.locator('select[name=kind]').selectOption('attachment');
    expect(await words('format')).toEqual(['', 'png', 'jpg', 'webp', 'gif']);
    await page.locator('select[name=kind]').selectOption('default avatar');
    const index = page.locator('input[name=index]');
    expect([await index.getAttribute('min'), await index.getAttribute('max')]).toEqual(['0', '5']);
  });

  test('has a focus ring that is no fault', async () => {
    const { page } = await visit({}, '#/avatars/06/no!.webp?size=64');
    await page.locator('.fault .status').waitFor();
    const colours = await page.locator('input[name=user_id]').evaluate((field: HTMLElement) => {
      document.querySelector<HTMLElement>('input[name=avatar_hash]')?.focus();
      const valid = document.querySelector<HTMLElement>('select[name=size]');
      valid?.focus({ focusVisible: true } as FocusOptions);
      return [
        getComputedStyle(field).borderColor,
        getComputedStyle(valid ?? document.body).outlineColor,
      ];
    });
    expect(new Set(colours).size).toBe(2);
  });
});
