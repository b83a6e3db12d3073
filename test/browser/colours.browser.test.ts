import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  largestDifference,
  profileRows,
  readMiddles,
  readShown,
  TOLERANCE,
} from '../support/images/profile-swatches.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { startBrowser } from './browser.ts';

/**
 * Swatches of 144 that Chromium may show otherwise: it computes in floats of 16 bits, which is seen in dark colours
 * that lie at the edge of sRGB.
 */
const MOST_OTHERS = 6;

/** An image as Chromium shows it: RGBA. */
interface Shown {
  readonly widthPx: number;
  readonly samples: readonly number[];
}

describe('colours in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    app = await createTestApp();
    browser = await startBrowser(['--force-color-profile=srgb']);
    page = await browser.newPage();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  const show = (file: Buffer, mimeType: string): Promise<Shown> =>
    page.evaluate(
      async (url) => {
        const image = new Image();
        image.src = url;
        await image.decode();
        const canvas = document.createElement('canvas');
        canvas.width = image.naturalWidth;
        canvas.height = image.naturalHeight;
        const context = canvas.getContext('2d', { willReadFrequently: true });
        if (context === null) throw new Error('Expected a canvas to draw on');
        context.drawImage(image, 0, 0);
        const { width, height } = canvas;
        return { widthPx: width, samples: [...context.getImageData(0, 0, width, height).data] };
      },
      `data:${mimeType};base64,${file.toString('base64')}`,
    );

  // Of alpha, a canvas keeps the product alone. Chromium decodes no AVIF with a grey profile, and shows inks by
  // other colours than their profile's.
  const opaque = profileRows.filter(
    ({ form, kind, hasAlpha }) => !hasAlpha && kind !== 'cmyk' && !form.startsWith('grey AVIF'),
  );

  test.each(opaque)('of $space in a $form are ours', async ({ form, draw }) => {
    const original = await draw();
    app.originals.put('attachments/1/2/x', original);
    app.clock.advance(1_000_000_000); // nothing of an earlier original is fresh any more
    const { rawPayload } = await app.server.inject({ url: '/attachments/1/2/x?format=webp' });
    const type = ['png', 'avif', 'webp', 'jpeg'].find((name) => form.toLowerCase().includes(name));
    const { widthPx, samples } = await show(original, `image/${type}`);
    const expected = readMiddles(samples, widthPx, 4).map((colour) => colour.slice(0, 3));
    const shown = await readShown(rawPayload);
    const others = expected.filter(
      (colour, index) => largestDifference([shown[index] ?? []], [colour]) > TOLERANCE,
    );
    expect(others.length).toBeLessThanOrEqual(MOST_OTHERS);
  });
});
