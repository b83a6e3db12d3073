import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { outputFormats } from '../../../src/contract/image-formats.ts';
import type { ByteSource, FrameDecoder } from '../../../src/formats/video/video-facts.ts';
import type { RenderJob } from '../../../src/pipeline/render/render-job.ts';
import { inspectMoving } from '../../../src/workers/child/video/inspect-moving.ts';
import { renderPoster } from '../../../src/workers/child/video/render-poster.ts';
import { BareDecoder, hasFfmpeg } from '../../support/videos/ffmpeg.ts';
import { memorySource, withGap } from '../../support/videos/sources.ts';

const folder = join(import.meta.dirname, '../../../fixtures/video');
const [head = [], ...rows] = readFileSync(join(folder, 'index.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => line.split('\t'));
const videos = rows.map((row) => Object.fromEntries(head.map((name, at) => [name, row[at] ?? ''])));

const fixture = (file = '') => readFileSync(join(folder, file));

const PROBES = { rgb_25_25: [1, 1], rgb_75_25: [3, 1], rgb_25_75: [1, 3], rgb_75_75: [3, 3] };

/** The poster at its own size as PNG. */
async function makePoster(
  source: ByteSource,
  decoder: FrameDecoder = new BareDecoder(),
  job: Partial<RenderJob> = {},
): Promise<Buffer> {
  const { video } = await inspectMoving(source);
  if (video === undefined) throw new Error('Expected a video');
  const { widthPx, heightPx } = video.size;
  const size = video.orientation < 5 ? video.size : { widthPx: heightPx, heightPx: widthPx };
  const poster = await renderPoster(source, decoder, {
    source: 'png',
    animation: undefined,
    originalSize: video.size,
    orientation: video.orientation,
    gamma: undefined,
    isRewrite: false,
    resize: 'none',
    shrinksOnLoad: false,
    size,
    format: 'png',
    encoder: outputFormats.png.qualities.lossless,
    maxInputPixels: 1e8,
    maxResultBytes: 1e8,
    ...job,
  });
  return Buffer.from(poster);
}

describe.skipIf(!hasFfmpeg)('posters', () => {
  test.each(videos.filter(({ poster_status }) => poster_status === '200'))(
    '$file: $note',
    async (row) => {
      const poster = sharp(await makePoster(memorySource(fixture(row.file))));
      const { data, info } = await poster.raw().toBuffer({ resolveWithObject: true });
      expect(`${info.width} ${info.height}`).toBe(`${row.display_width} ${row.display_height}`);
      for (const [probe, [x = 0, y = 0]] of Object.entries(PROBES)) {
        const [left, top] = [Math.floor((info.width * x) / 4), Math.floor((info.height * y) / 4)];
        const at = (top * info.width + left) * info.channels;
        const wanted = (row[probe] ?? '').split(',').map(Number);
        const distances = wanted.map((level, c) => Math.abs(level - (data[at + c] ?? 0)));
        expect(Math.max(...distances), probe).toBeLessThanOrEqual(Number(row.tolerance));
      }
    },
  );
});

describe('facts', () => {
  test.each(videos.filter(({ container }) => container !== '-'))('$file: $note', async (row) => {
    const facts = await inspectMoving(memorySource(fixture(row.file)));
    const [container = '', isFragmented] = (row.container ?? '').split(' ');
    expect(facts.container).toBe(container === 'mkv' ? 'matroska' : container);
    if (row.duration_s !== '-') expect(facts.durationS).toBe(Number(row.duration_s));
    if (row.poster_status === '200') expect(facts.video?.codec).toBe(row.codec);
    else expect(isFragmented).toBeUndefined();
    expect(facts.hasAudio).toBe(/sound/.test(row.note ?? '') || row.file === 'truncated.mp4');
    expect(facts.fault?.code).toBe(
      row.poster_status === '415' ? 'UNSUPPORTED_MEDIA_TYPE' : undefined,
    );
  });
});

describe('what a video of 500 MB costs', () => {
  const GAP_BYTES = 500_000_000;
  // The key frames of these files have less than 2 kB.
  const cost = ({ reads }: { readonly reads: readonly (readonly [number, number])[] }) => ({
    reads: reads.length,
    bytes: reads.reduce((sum, [start, end]) => sum + end - start, 0),
  });
  const refusal = new MediaError('UNPROCESSABLE_MEDIA');
  const decoder = { decode: () => Promise.reject(refusal) };

  test.each([
    ['its movie box at the end', 'clip-h264.mp4', 'moov'],
    ['its movie box in front of a gap', 'clip-faststart-601-full.mp4', 'mdat'],
    ['its movie box in front', 'clip-faststart-601-full.mp4', undefined],
    ['fragments', 'clip-fragmented.mp4', undefined],
  ])('with %s', async (_, file, before) => {
    const source = withGap(fixture(file), before, GAP_BYTES);
    const { durationS, fault } = await inspectMoving(source);
    expect(fault).toBeUndefined();
    expect(durationS).toBe(Number(videos.find((row) => row.file === file)?.duration_s));
    const facts = cost(source);
    expect(facts.reads).toBeLessThanOrEqual(4);
    expect(facts.bytes).toBeLessThanOrEqual(256 * 1024);
    source.reads.length = 0;
    // Everything up to the decoder; the facts are read again, since another process may do so.
    await expect(makePoster(source, decoder)).rejects.toBe(refusal);
    expect(cost(source).reads - facts.reads).toBeLessThanOrEqual(6);
    expect(cost(source).bytes - facts.bytes).toBeLessThanOrEqual(256 * 1024);
  });
});
