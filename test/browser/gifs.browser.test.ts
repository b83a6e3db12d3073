import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { drawRandomGif } from '../support/images/random-gif.ts';
import { useService } from '../support/processes/service-process.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { useBrowser } from './browser.ts';

const directories = [
  'gif',
  'corpus/gif-animated',
  'corpus/gif-delays',
  'corpus/gif-static',
  'corpus/emoji-small',
];
const drawn = Array.from({ length: 40 }, (_, seed) => `drawn ${seed}`);
const files = directories.flatMap((directory) =>
  readdirSync(join('fixtures', directory))
    .filter((file) => file.endsWith('.gif'))
    .map((file) => join(directory, file)),
);

const readOriginal = (name: string): Buffer =>
  name.startsWith('drawn') ? drawRandomGif(name).gif : readFileSync(join('fixtures', name));

const names = [...files, ...drawn];
const directory = await useTemporaryDirectory();
for (const [id, name] of names.entries())
  await directory.put(`avatars/${1 + id}/ab12`, readOriginal(name));
const service = await useService({ STORAGE_DIR: directory.path });
const browser = await useBrowser(['--force-color-profile=srgb']);
const page = await (await browser.newContext()).newPage();
// Only secure contexts have ImageDecoder.
await page.route('https://gifs.example/', (route) => route.fulfill({ body: '' }));
await page.goto('https://gifs.example/');

/** Returns the size, and the SHA-256 of each frame's RGBA, as decoded by Chromium. */
function decodeInBrowser(gif: Buffer) {
  return page.evaluate(async (base64) => {
    const data = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const decoder = new ImageDecoder({ data, type: 'image/gif' });
    await decoder.tracks.ready;
    await decoder.completed;
    const count = decoder.tracks.selectedTrack?.frameCount ?? 0;
    let size: number[] = [];
    const digests: string[] = [];
    for (let frameIndex = 0; frameIndex < count; frameIndex += 1) {
      const { image } = await decoder.decode({ frameIndex });
      const { displayWidth, displayHeight } = image;
      size = [displayWidth, displayHeight];
      const context = new OffscreenCanvas(displayWidth, displayHeight).getContext('2d');
      if (context === null) throw new Error('No canvas');
      context.drawImage(image, 0, 0);
      const { data: pixels } = context.getImageData(0, 0, displayWidth, displayHeight);
      const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', pixels));
      digests.push([...digest].map((byte) => byte.toString(16).padStart(2, '0')).join(''));
    }
    return { size, digests };
  }, gif.toString('base64'));
}

test.each([...names.entries()])(
  '%i: the service decodes the same frames as Chromium: %s',
  async (id, name) => {
    const target = `/avatars/${1 + id}/ab12.webp?size=4096&quality=lossless&animated=true`;
    const response = await fetch(`${service.origin}${target}`);
    expect(response.status).toBe(200);
    const shown = sharp(Buffer.from(await response.arrayBuffer()), { animated: true });
    const { width, height, pageHeight = height } = await shown.metadata();
    const pixels = await shown.ensureAlpha().raw().toBuffer();
    const frameBytes = 4 * width * pageHeight;
    const digests = Array.from({ length: pixels.length / frameBytes }, (_, frame) =>
      createHash('sha256')
        .update(pixels.subarray(frame * frameBytes, (frame + 1) * frameBytes))
        .digest('hex'),
    );
    expect({ size: [width, pageHeight], digests }).toEqual(
      await decodeInBrowser(readOriginal(name)),
    );
  },
);
