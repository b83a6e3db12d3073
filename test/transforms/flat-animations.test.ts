import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { createSeededRandom } from '../support/seeded-random.ts';
import { shareTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';

/** Maximum size relative to the lossless encoding (contract §3). */
const MAX_RATIO = 1.02;

interface Drawing {
  readonly widthPx: number;
  readonly heightPx: number;
  readonly frames: number;
  /** Colour of a pixel, 0 to 255. */
  readonly draw: (x: number, y: number, frame: number) => number;
}

const noise = createSeededRandom('noise');
const NOISE = Uint8Array.from({ length: 65_537 }, () => noise.integer(256));
const noiseAt = (x: number, y: number, frame = 0): number =>
  NOISE[(x * 7919 + y * 104_729 + frame * 1_299_709) % NOISE.length] ?? 0;
/** A slide of eight colours with a moving bar. */
const slide = (x: number, y: number, frame: number): number =>
  Math.abs(x - 3 * frame) < 6 && y % 40 < 20 ? 7 : (x >> 6) % 3;
const photograph = (x: number, y: number, frame = 0): number =>
  Math.floor(128 + 60 * Math.sin((x + frame) / 19) + 50 * Math.cos(y / 23) + noiseAt(x, y) / 16);

const drawings: Readonly<Record<string, Drawing>> = {
  'a slide, and a photograph as the first frame': {
    widthPx: 300,
    heightPx: 200,
    frames: 24,
    draw: (x, y, frame) => (frame === 0 ? photograph(x, y) : slide(x, y, frame)),
  },
  'a slide, and a photograph as the middle frame': {
    widthPx: 300,
    heightPx: 200,
    frames: 25,
    draw: (x, y, frame) => (frame === 12 ? photograph(x, y) : slide(x, y, frame)),
  },
  'a photograph on which a bar moves, of more than 4 megapixels': {
    widthPx: 500,
    heightPx: 340,
    frames: 30,
    draw: (x, y, frame) => (slide(x, y, frame) === 7 ? 7 : photograph(x, y)),
  },
  'a slide of more than 4 megapixels': {
    widthPx: 640,
    heightPx: 400,
    frames: 20,
    draw: slide,
  },
  'specks on a shaded screen, of more than 4 megapixels': {
    widthPx: 1000,
    heightPx: 175,
    frames: 25,
    draw: (x, y, frame) => (noiseAt(x, y, frame) === 0 ? 255 : photograph(x, y) & 0xfc),
  },
  'a moving photograph': {
    widthPx: 200,
    heightPx: 150,
    frames: 10,
    draw: photograph,
  },
  'noise in two colours': {
    widthPx: 160,
    heightPx: 120,
    frames: 12,
    draw: (x, y, frame) => (noiseAt(x, y, frame) > 200 ? 255 : 0),
  },
  // Small without loss because of its palette and repeats, although a scaled frame looks like a photograph.
  'moving tiles of noise': {
    widthPx: 384,
    heightPx: 384,
    frames: 6,
    draw: (x, y, frame) => noiseAt((x + 2 * frame) % 64, y % 64),
  },
  'noise in a corner of a slide': {
    widthPx: 256,
    heightPx: 256,
    frames: 16,
    draw: (x, y, frame) => (x < 40 && y < 40 ? noiseAt(x, y, frame) : slide(x, y, frame)),
  },
};

/** Draws an animation of at most 256 hues, which a GIF encodes exactly. */
function toGif({ widthPx, heightPx, frames, draw }: Drawing): Promise<Buffer> {
  const pixels = new Uint8Array(3 * widthPx * heightPx * frames);
  for (let frame = 0, at = 0; frame < frames; frame += 1) {
    for (let y = 0; y < heightPx; y += 1) {
      for (let x = 0; x < widthPx; x += 1, at += 3) {
        const colour = draw(x, y, frame) & 0xff;
        pixels[at] = colour;
        pixels[at + 1] = (colour * 5) & 0xff;
        pixels[at + 2] = 255 - colour;
      }
    }
  }
  const raw = {
    width: widthPx,
    height: heightPx * frames,
    channels: 3,
    pageHeight: heightPx,
  } as const;
  return sharp(pixels, { raw }).gif({ effort: 1, dither: 0 }).toBuffer();
}

const originals: [name: string, read: () => Buffer | Promise<Buffer>][] = [
  ['few-colours.gif', () => readFileSync('fixtures/gif/few-colours.gif')],
  ...Object.entries(drawings).map(([name, drawing]): (typeof originals)[number] => [
    name,
    () => toGif(drawing),
  ]),
];

const app = shareTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '120000' } });

async function request(original: Buffer, query: string): Promise<Buffer> {
  const path = `/attachments/1/{id}/file?format=webp&animated=true&${query}`;
  const { statusCode, rawPayload } = await app.serve(original, path);
  expect(statusCode, path).toBe(200);
  return rawPayload;
}

test.each(originals)(
  'high and low have at most 1.02 times the bytes of lossless: %s',
  { timeout: 600_000 },
  async (name, read) => {
    const original = await read();
    const { width = 0 } = await sharp(original).metadata();
    const isLong = name === 'few-colours.gif';
    const widths = isLong
      ? [300]
      : atScale([width, width / 2, 48], [width, width / 2, width - 1, 144, 48, 28]);
    for (const edge of widths) {
      const exact = await request(original, `width=${edge}&quality=lossless`);
      for (const quality of ['high', 'low']) {
        const rendered = await request(original, `width=${edge}&quality=${quality}`);
        expect(rendered.length / exact.length, `${quality} at ${edge}`).toBeLessThanOrEqual(
          MAX_RATIO,
        );
      }
    }
  },
);
