/** The frames of APNGs beside what Chromium shows of them, pixel by pixel. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apngDrawings } from '../support/images/apng-drawings.ts';
import { drawApng } from '../support/images/draw-apng.ts';
import { decodeImage } from '../support/images/image-comparison.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { hasBrowser, startBrowser } from './browser.ts';

const corpus = new URL('../../fixtures/corpus/apng/', import.meta.url);

const files = [
  ...apngDrawings.map(({ name, drawn }) => ({ name, bytes: drawApng(drawn) })),
  ...readdirSync(corpus).map((name) => ({ name, bytes: readFileSync(new URL(name, corpus)) })),
  ...['golden-originals/image-apart.png'].map((name) => ({
    name,
    bytes: readFileSync(new URL(`../../fixtures/${name}`, import.meta.url)),
  })),
];

/** Both round; Chromium blends in premultiplied samples, and so rounds twice. */
const MAX_DIFFERENCE = 2;

interface BrowserFrame {
  readonly durationUs: number;
  /** RGBA, 8 bits, not premultiplied. */
  readonly base64: string;
}

describe.skipIf(!hasBrowser)('in Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    app = await createTestApp();
    browser = await startBrowser();
    page = await browser.newPage();
    // Where decoders can be had: on a page that counts as secure.
    await page.route('http://localhost/', (route) =>
      route.fulfill({ contentType: 'text/html', body: '' }),
    );
    await page.goto('http://localhost/');
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

  test.each(files)('$name is the same', async ({ name, bytes }) => {
    const index = files.findIndex((file) => file.name === name);
    app.originals.put(`stickers/${index}`, bytes);
    const { rawPayload } = await app.server.inject({ url: `/stickers/${index}.webp` });
    const ours = await decodeImage(rawPayload);
    const theirs = await decodeInBrowser(page, bytes);
    expect(ours.frames).toHaveLength(theirs.length);
    for (const [at, { durationUs, base64 }] of theirs.entries()) {
      // Orientation is for the page to apply, not for the decoder.
      if (!name.includes('image-apart')) {
        const differences = compare(ours.frames[at] ?? [], Buffer.from(base64, 'base64'));
        expect(Math.max(...differences)).toBeLessThanOrEqual(MAX_DIFFERENCE);
      }
      const delayMs = ours.delaysMs?.[at];
      if (delayMs !== undefined)
        expect(Math.abs(delayMs - durationUs / 1_000)).toBeLessThanOrEqual(1);
    }
  });
});

/** What differs to the eye: colours weighted by alpha. */
function compare(ours: ArrayLike<number>, theirs: ArrayLike<number>): number[] {
  expect(ours.length).toBe(theirs.length);
  const seen = (pixels: ArrayLike<number>, at: number): number => {
    const alpha = pixels[at - (at % 4) + 3] ?? 0;
    return at % 4 === 3 ? alpha : ((pixels[at] ?? 0) * alpha) / 255;
  };
  return Array.from(ours, (_, at) => Math.abs(seen(ours, at) - seen(theirs, at)));
}

function decodeInBrowser(page: Page, apng: Buffer): Promise<BrowserFrame[]> {
  return page.evaluate(async (base64) => {
    const response = await fetch(`data:image/apng;base64,${base64}`);
    // TypeScript does not know of the last one.
    const options = {
      data: await response.arrayBuffer(),
      type: 'image/apng',
      premultiplyAlpha: 'none',
    } as const;
    const decoder = new ImageDecoder(options);
    await decoder.completed;
    await decoder.tracks.ready;
    const count = decoder.tracks.selectedTrack?.frameCount ?? 0;
    const frames = [];
    for (let frameIndex = 0; frameIndex < count; frameIndex += 1) {
      const { image } = await decoder.decode({ frameIndex, completeFramesOnly: true });
      const format = 'RGBA';
      const pixels = new Uint8Array(image.allocationSize({ format }));
      await image.copyTo(pixels, { format });
      frames.push({
        durationUs: image.duration ?? 0,
        base64: btoa(Array.from(pixels, (sample) => String.fromCharCode(sample)).join('')),
      });
    }
    return frames;
  }, apng.toString('base64'));
}
