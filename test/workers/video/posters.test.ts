import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { outputFormats } from '../../../src/contract/image-formats.ts';
import { inspectMoving } from '../../../src/workers/child/video/inspect-moving.ts';
import { renderPoster } from '../../../src/workers/child/video/render-poster.ts';
import { BareDecoder, hasFfmpeg } from '../../support/videos/ffmpeg.ts';
import { memorySource } from '../../support/videos/sources.ts';

const folder = join(import.meta.dirname, '../../../fixtures/video');
const [head = [], ...rows] = readFileSync(join(folder, 'index.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => line.split('\t'));
const videos = rows.map((row) => Object.fromEntries(head.map((name, at) => [name, row[at] ?? ''])));

const PROBES = { rgb_25_25: [1, 1], rgb_75_25: [3, 1], rgb_25_75: [1, 3], rgb_75_75: [3, 3] };

/** The poster at its own size as PNG. */
async function makePoster(file: Uint8Array): Promise<Buffer> {
  const { video } = await inspectMoving(memorySource(file));
  if (video === undefined) throw new Error('Expected a video');
  const { widthPx, heightPx } = video.size;
  const size = video.orientation < 5 ? video.size : { widthPx: heightPx, heightPx: widthPx };
  const poster = await renderPoster(memorySource(file), new BareDecoder(), {
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
  });
  return Buffer.from(poster);
}

describe.skipIf(!hasFfmpeg)('posters', () => {
  test.each(videos.filter(({ poster_status }) => poster_status === '200'))(
    '$file: $note',
    async (row) => {
      const poster = sharp(await makePoster(readFileSync(join(folder, row.file ?? ''))));
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
    const facts = await inspectMoving(memorySource(readFileSync(join(folder, row.file ?? ''))));
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
