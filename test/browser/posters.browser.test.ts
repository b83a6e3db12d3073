import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { useService } from '../support/processes/service-process.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';
import { useBrowser } from './browser.ts';

/** Debian's Chromium has no HEVC. Of `black-start.mp4`, the poster is a later frame. */
const rows = readFileSync('fixtures/video/index.tsv', 'utf8')
  .split('\n')
  .map((line) => line.split('\t'))
  .filter(
    ([file, , codec]) => /^(?:h264|vp8|vp9|av1)$/.test(codec ?? '') && file !== 'truncated.mp4',
  )
  .flatMap(([file]) => (file === undefined || file === 'black-start.mp4' ? [] : [file]));

const folder = await useTemporaryFolder();
for (const file of rows) {
  await folder.put(`attachments/1/2/${file}`, readFileSync(join('fixtures/video', file)));
}
const service = await useService({ STORAGE_DIR: folder.path });
const page = await (await useBrowser(['--force-color-profile=srgb'])).newPage();

/** Draws the first frame of a video, or a picture, in the browser; returns a PNG. */
async function draw(kind: 'video' | 'img', path: string): Promise<Buffer> {
  const url = await page.evaluate(
    async ([name, src]) => {
      const shown = document.createElement(name as 'video' | 'img');
      await new Promise((resolve, reject) => {
        shown.addEventListener(name === 'img' ? 'load' : 'loadeddata', resolve);
        shown.addEventListener('error', () => reject(new Error(`Cannot show ${src}`)));
        shown.crossOrigin = 'anonymous';
        shown.src = src ?? '';
      });
      const isVideo = shown instanceof HTMLVideoElement;
      if (isVideo) {
        document.body.append(shown); // one that is not shown decodes no frame
        await new Promise((resolve) => {
          shown.requestVideoFrameCallback(resolve);
          shown.currentTime = 0;
        });
      }
      const canvas = document.createElement('canvas');
      canvas.width = isVideo ? shown.videoWidth : shown.naturalWidth;
      canvas.height = isVideo ? shown.videoHeight : shown.naturalHeight;
      canvas.getContext('2d')?.drawImage(shown, 0, 0);
      return canvas.toDataURL('image/png');
    },
    [kind, path],
  );
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64');
}

const pixels = (png: Buffer) =>
  sharp(png).removeAlpha().raw().toBuffer({ resolveWithObject: true });

test.each(rows)("the poster of %s is Chromium's own first frame", async (file) => {
  const path = `${service.origin}/attachments/1/2/${file}`;
  const [theirs, ours] = [await draw('video', path), await draw('img', `${path}?format=png`)];
  const [frame, poster] = [await pixels(theirs), await pixels(ours)];
  expect(poster.info).toMatchObject({ width: frame.info.width, height: frame.info.height });
  const sums = [0, 0, 0];
  for (const [at, level] of frame.data.entries()) {
    sums[at % 3] = (sums[at % 3] ?? 0) + Math.abs(level - (poster.data[at] ?? 0));
  }
  // Its constants for BT.709 are rounded: up to 8 levels of blue.
  const means = sums.map((sum) => (sum * 3) / frame.data.length);
  expect(Math.max(...means)).toBeLessThanOrEqual(7);
});
