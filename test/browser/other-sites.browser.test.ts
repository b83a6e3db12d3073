import { readFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, onTestFinished, test } from 'vitest';
import { useService } from '../support/processes/service-process.ts';
import { useSiteServer } from '../support/sites/site-server.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';
import { useBrowser } from './browser.ts';

const SIZE_BYTES = 100_000_000;

/** Debian's Chromium does not decode HEVC. The poster of `black-start.mp4` is a later frame. */
const videos = readFileSync('fixtures/video/index.tsv', 'utf8')
  .split('\n')
  .map((line) => line.split('\t'))
  .flatMap(([file = '', , codec = '']) => (/^(?:h264|vp8|vp9|av1)$/.test(codec) ? [file] : []))
  .filter((file) => !['black-start.mp4', 'truncated.mp4'].includes(file));

const directory = await useTemporaryDirectory();
for (const file of videos) {
  await directory.put(`attachments/1/3/${file}`, readFileSync(join('fixtures/video', file)));
}
const uploads = await useTemporaryDirectory();
const service = await useService({
  STORAGE_DIR: directory.path,
  UPLOADS_DIR: uploads.path,
  RELAY_SIGNING_KEYS: RELAY_KEY,
  LOG_LEVEL: 'info',
});
const site = await useSiteServer();
const html = Buffer.from('<!doctype html><title>Another site</title>');
site.serve('/', html, { 'Content-Type': 'text/html' });
const browser = await useBrowser(['--force-color-profile=srgb']);

/** Opens the page of another site in a new browser context, without cached preflights, until the end of the test. */
async function openPage(uploadBytesPerSecond = -1) {
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${site.port}/`);
  const session = await context.newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 0,
    downloadThroughput: -1,
    uploadThroughput: uploadBytesPerSecond,
  });
  return page;
}

type Page = Awaited<ReturnType<typeof openPage>>;

/** Uploads a file from the page with XMLHttpRequest, since fetch does not report progress. */
const upload = (page: Page, target: string) =>
  page.evaluate(
    async ({ url, sizeBytes }) => {
      const request = new XMLHttpRequest();
      /** Bytes sent so far, at each event. */
      const progress: number[] = [];
      request.upload.onprogress = ({ loaded }) => progress.push(loaded);
      const isDone = new Promise((resolve, reject) => {
        request.onerror = () => reject(new Error('The page received a network error.'));
        request.onload = resolve;
      });
      request.open('PUT', url);
      request.setRequestHeader('Content-Type', 'video/mp4');
      // Headers that clients of the platform send to its API; the service ignores them.
      request.setRequestHeader('Authorization', 'a-token-of-the-platform');
      request.setRequestHeader('X-Client-Context', 'x');
      request.send(new Blob([new Uint8Array(sizeBytes)]));
      await isDone;
      const { status, responseText: body } = request;
      return { status, etag: request.getResponseHeader('ETag'), body, progress };
    },
    { url: `${service.origin}${target}`, sizeBytes: SIZE_BYTES },
  );

const countPreflights = (): number => service.output().split('"method":"OPTIONS"').length - 1;

const videoPage = await browser.newPage();

/** Draws the first frame of a video in the browser, as a PNG. */
async function drawFrame(src: string): Promise<Buffer> {
  const url = await videoPage.evaluate(async (source) => {
    const video = document.createElement('video');
    await new Promise((resolve, reject) => {
      video.addEventListener('loadeddata', resolve);
      video.addEventListener('error', () => reject(new Error(`Cannot show ${source}`)));
      video.crossOrigin = 'anonymous';
      video.src = source;
    });
    document.body.append(video); // videos outside the document decode no frames
    const canvas = document.createElement('canvas');
    canvas.width = video.videoWidth;
    canvas.height = video.videoHeight;
    const context = canvas.getContext('2d');
    // The callback must be registered before the first frame.
    do {
      await new Promise(requestAnimationFrame);
      context?.drawImage(video, 0, 0);
    } while (context?.getImageData(0, 0, 1, 1).data[3] === 0);
    return canvas.toDataURL('image/png');
  }, src);
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64');
}

const pixels = (png: Parameters<typeof sharp>[0]) =>
  sharp(png).removeAlpha().raw().toBuffer({ resolveWithObject: true });

describe('a page of another site', () => {
  test('uploads a file of 100 MB', async () => {
    const page = await openPage(50_000_000);
    const preflights = countPreflights();
    const key = 'attachments/1/2/film.mp4';
    const { status, etag, body, progress } = await upload(page, uploadTarget(key));
    expect([status, body]).toEqual([200, '']);
    expect(etag).toMatch(/^"[^"]+"$/);
    expect((await stat(join(directory.path, key))).size).toBe(SIZE_BYTES);
    await expect.poll(countPreflights).toBe(preflights + 1);
    expect(progress).toEqual([...progress].sort((a, b) => a - b));
    expect(progress.some((sentBytes) => sentBytes > 0 && sentBytes < SIZE_BYTES)).toBe(true);
    expect(progress.at(-1)).toBe(SIZE_BYTES);
  });

  test('uploads a file to the uploads bucket, twice (contract §14)', async () => {
    const page = await openPage();
    for (const _ of ['new', 'replaced']) {
      const { status, etag } = await upload(page, uploadTarget('film', { bucket: 'uploads' }));
      expect([status, etag]).toEqual([200, expect.stringMatching(/^"[^"]+"$/)]);
    }
    expect((await stat(join(uploads.path, 'film'))).size).toBe(SIZE_BYTES);
  });

  // At full speed, and so slowly that the service responds before everything is sent.
  test.each([-1, 10_000_000])(
    'reads the error of a rejected upload, at %s bytes a second',
    async (pace) => {
      const page = await openPage(pace);
      await directory.put('attachments/1/1/there', 'x');
      const before = await readdir(directory.path, { recursive: true });
      const taken = uploadTarget('attachments/1/1/there');
      for (const [target, refusal, code] of [
        [taken, 409, 'MEDIA_EXISTS'],
        [taken.slice(0, -1), 401, 'UNAUTHORIZED'],
      ] as const) {
        const { status, body } = await upload(page, target);
        expect([status, JSON.parse(body)]).toMatchObject([refusal, { code }]);
      }
      expect(await readdir(directory.path, { recursive: true })).toEqual(before);
    },
  );

  test.each(videos)('shows a first frame of %s that resembles its poster', async (file) => {
    const url = `${service.origin}/attachments/1/3/${file}`;
    const frame = await pixels(await drawFrame(url));
    const poster = await pixels(await (await fetch(`${url}?format=png`)).arrayBuffer());
    expect(poster.info).toMatchObject({ width: frame.info.width, height: frame.info.height });
    const sums = [0, 0, 0];
    for (const [at, level] of frame.data.entries()) {
      sums[at % 3] = (sums[at % 3] ?? 0) + Math.abs(level - (poster.data[at] ?? 0));
    }
    // Chromium rounds the BT.709 coefficients: up to 8 levels of blue.
    const means = sums.map((sum) => (sum * 3) / frame.data.length);
    expect(Math.max(...means)).toBeLessThanOrEqual(7);
  });
});
