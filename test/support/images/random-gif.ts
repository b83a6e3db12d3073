import { join, u16le } from '../../formats/containers.ts';
import { createSeededRandom } from '../seeded-random.ts';
import { compressIndices } from './draw-gif.ts';

const OPAQUE = 0xff_00_00_00;
const PASSES = [
  [0, 8],
  [4, 8],
  [2, 4],
  [1, 2],
] as const;

/**
 * Draws a GIF of random frames, and the frames that a browser shows: rows of words with alpha in the highest byte and red
 * in the lowest; 0 for unpainted pixels.
 */
export function drawRandomGif(seed: string): { gif: Buffer; frames: number[][]; widthPx: number } {
  const random = createSeededRandom(seed);
  const isOneIn = (odds: number): boolean => random.integer(odds) === 0;
  const bits = 2 + random.integer(3);
  const drawTable = () => Array.from({ length: 3 << bits }, () => random.integer(256));
  const screen = [1 + random.integer(12), 1 + random.integer(12)] as const;
  const table = drawTable();
  const blocks: Buffer[] = [];
  const frames: number[][] = [];
  let [widthPx, heightPx] = screen;
  let canvas: number[] = [];
  for (let count = 1 + random.integer(6); count > 0; count -= 1) {
    const left = isOneIn(3) ? 0 : random.integer(screen[0]);
    const top = isOneIn(3) ? 0 : random.integer(screen[1]);
    const width = isOneIn(4) ? 1 + random.integer(14) : Math.max(1, screen[0] - left);
    const height = isOneIn(4) ? 1 + random.integer(14) : Math.max(1, screen[1] - top);
    if (frames.length === 0) {
      widthPx = Math.max(widthPx, left + width);
      heightPx = Math.max(heightPx, top + height);
      canvas = Array.from({ length: widthPx * heightPx }, () => 0);
    }
    const own = isOneIn(3) ? drawTable() : undefined;
    const isInterlaced = isOneIn(3);
    const pixels = Array.from({ length: width * height }, () => random.integer(1 << bits));
    let [disposal, transparent] = [0, -1];
    // The last of several control extensions counts.
    for (let controls = random.integer(3); controls > 0; controls -= 1) {
      const [isTransparent, index] = [isOneIn(2), random.integer(1 << bits)];
      disposal = random.integer(8);
      transparent = isTransparent ? index : -1;
      const packed = (disposal << 2) | (isTransparent ? 1 : 0);
      blocks.push(join('!', 0xf9, 4, packed, u16le(10), index, 0));
    }
    const flags = (own === undefined ? 0 : 0x80 | (bits - 1)) | (isInterlaced ? 0x40 : 0);
    const box = join(',', u16le(left, top, width, height), flags, ...(own ?? []));
    blocks.push(box, compressIndices(pixels, bits));
    const before = [...canvas];
    const rows = isInterlaced
      ? PASSES.flatMap(([first, step]) =>
          Array.from(
            { length: Math.ceil((height - first) / step) },
            (_, row) => first + row * step,
          ),
        )
      : Array.from({ length: height }, (_, row) => row);
    const area: number[] = [];
    for (const [at, index] of pixels.entries()) {
      const [x, y] = [left + (at % width), top + (rows[Math.floor(at / width)] ?? 0)];
      if (x >= widthPx || y >= heightPx) continue;
      area.push(y * widthPx + x);
      const [red = 0, green = 0, blue = 0] = (own ?? table).slice(3 * index, 3 * index + 3);
      const colour = (OPAQUE | (blue << 16) | (green << 8) | red) >>> 0;
      if (index !== transparent) canvas[y * widthPx + x] = colour;
    }
    frames.push([...canvas]);
    if (disposal === 2) for (const at of area) canvas[at] = 0;
    if (disposal === 3 || disposal === 4) canvas = before;
  }
  const gif = join('GIF89a', u16le(...screen), 0xf0 | (bits - 1), 0, 0, ...table, ...blocks, ';');
  return { gif, frames, widthPx };
}
