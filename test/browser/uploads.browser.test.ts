import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterEach, describe, expect, test } from 'vitest';
import { useService } from '../support/processes/service-process.ts';
import { SiteServer } from '../support/sites/site-server.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';
import { useBrowser } from './browser.ts';

const SIZE_BYTES = 100_000_000;

/** What a script of the page learns of its upload. */
interface Outcome {
  readonly status: number;
  readonly etag: string | null;
  readonly body: string;
  /** Bytes sent so far, at each event. */
  readonly progress: readonly number[];
}

const folder = await useTemporaryFolder();
const uploads = await useTemporaryFolder();
const service = await useService({
  STORAGE_DIR: folder.path,
  UPLOADS_DIR: uploads.path,
  RELAY_SIGNING_KEYS: RELAY_KEY,
  LOG_LEVEL: 'info',
});
const site = await SiteServer.use();
const html = Buffer.from('<!doctype html><title>Another site</title>');
site.serve('/', html, { 'Content-Type': 'text/html' });
const browser = await useBrowser();
let page: Page;

afterEach(() => page?.context().close());

/** Opens the other site's page in a window of its own, which remembers no preflight. */
async function openPage(uploadBytesPerSecond: number): Promise<void> {
  page = await (await browser.newContext()).newPage();
  await page.goto(`http://127.0.0.1:${site.port}/`);
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 0,
    downloadThroughput: -1,
    uploadThroughput: uploadBytesPerSecond,
  });
}

/** Sends a file from the page; fetch has the same rules, and tells no progress. */
const upload = (target: string): Promise<Outcome> =>
  page.evaluate(
    ({ url, sizeBytes }) =>
      new Promise<Outcome>((resolve, reject) => {
        const request = new XMLHttpRequest();
        const progress: number[] = [];
        request.upload.onprogress = ({ loaded }) => progress.push(loaded);
        request.onerror = () => reject(new Error('The page sees a network error.'));
        request.onload = () =>
          resolve({
            status: request.status,
            etag: request.getResponseHeader('ETag'),
            body: request.responseText,
            progress,
          });
        request.open('PUT', url);
        request.setRequestHeader('Content-Type', 'video/mp4');
        // Clients of the platform send the headers of its API along; nobody reads them here.
        request.setRequestHeader('Authorization', 'a-token-of-the-platform');
        request.setRequestHeader('X-Client-Context', 'x');
        request.send(new Blob([new Uint8Array(sizeBytes)]));
      }),
    { url: `${service.origin}${target}`, sizeBytes: SIZE_BYTES },
  );

const countPreflights = (): number => service.output().split('"method":"OPTIONS"').length - 1;

describe('a page of another site', () => {
  test('uploads a file of 100 MB', async () => {
    await openPage(50_000_000);
    const preflights = countPreflights();
    const key = 'attachments/1/2/film.mp4';
    const { status, etag, body, progress } = await upload(uploadTarget(key));
    expect([status, body]).toEqual([200, '']);
    expect(etag).toMatch(/^"[^"]+"$/);
    expect((await stat(join(folder.path, key))).size).toBe(SIZE_BYTES);
    await expect.poll(countPreflights).toBe(preflights + 1);
    expect(progress).toEqual([...progress].sort((a, b) => a - b));
    expect(progress.some((sentBytes) => sentBytes > 0 && sentBytes < SIZE_BYTES)).toBe(true);
    expect(progress.at(-1)).toBe(SIZE_BYTES);
  });

  test('uploads a file into the bucket of uploads, twice (contract §14)', async () => {
    await openPage(-1);
    for (const _ of ['new', 'replaced']) {
      const { status, etag } = await upload(uploadTarget('film', { bucket: 'uploads' }));
      expect([status, etag]).toEqual([200, expect.stringMatching(/^"[^"]+"$/)]);
    }
    expect((await stat(join(uploads.path, 'film'))).size).toBe(SIZE_BYTES);
  });

  // As fast as this machine is, and so slow that the service hangs up before all is sent.
  test.each([-1, 10_000_000])('reads why one is refused, at %s bytes a second', async (pace) => {
    await openPage(pace);
    await folder.put('attachments/1/1/there', 'x');
    const before = await readdir(folder.path, { recursive: true });
    const taken = uploadTarget('attachments/1/1/there');
    for (const [target, refusal, code] of [
      [taken, 409, 'MEDIA_EXISTS'],
      [taken.slice(0, -1), 401, 'UNAUTHORIZED'],
    ] as const) {
      const { status, body } = await upload(target);
      expect([status, JSON.parse(body)]).toMatchObject([refusal, { code }]);
    }
    expect(await readdir(folder.path, { recursive: true })).toEqual(before);
  });
});
