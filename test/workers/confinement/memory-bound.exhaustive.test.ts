import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { RenderJob } from '../../../src/pipeline/render/render-job.ts';
import { anyJob, usePools } from '../../support/processes/worker-pool.ts';
import { samples } from '../../support/test-app.ts';
import { startReal } from './real-workers.ts';

const start = usePools();

const MEBIBYTE = 2 ** 20;

/** A picture of one colour. */
const paint = ({ widthPx: width, heightPx: height }: RenderJob['size']) =>
  sharp({ create: { width, height, channels: 4, background: '#abcd' } });

describe.skipIf(process.platform !== 'linux')('a confined worker (limits of Linux)', () => {
  test.each([
    ['png', { progressive: true }],
    ['jpeg', { progressive: true, chromaSubsampling: '4:4:4' }],
    ['webp', { lossless: true, effort: 0 }],
    ['avif', { effort: 0 }],
  ] as const)(
    'that decodes more than it may hold fails that job alone: %s',
    async (format, how) => {
      const size = { widthPx: 5_000, heightPx: 5_000 };
      const original = await paint(size).toFormat(format, how).toBuffer();
      const { render } = await startReal(start, 256 * MEBIBYTE);
      const encoder = { lossless: true, effort: 0 };
      const job: RenderJob = { ...anyJob, originalSize: size, size, format: 'webp', encoder };
      const failure: unknown = await render(original, job).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(MediaError);
      expect(failure).toMatchObject({ status: 422 });
      expect((await render(samples.png)).length).toBeGreaterThan(100);
    },
  );

  test('decodes in memory what libvips would put into a file', async () => {
    // Its threshold is 100 MiB; no file could be written.
    const originalSize = { widthPx: 5_200, heightPx: 5_200 };
    const original = await paint(originalSize).webp({ lossless: true, effort: 0 }).toBuffer();
    const { render } = await startReal(start);
    const size = { widthPx: 16, heightPx: 16 };
    const rendered = await render(original, { ...anyJob, originalSize, resize: 'scale', size });
    expect(await sharp(rendered).metadata()).toMatchObject({ format: 'png', width: 16 });
  });
});
