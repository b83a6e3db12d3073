import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findUnusedIndex, repairGif } from '../../../src/formats/gif/gif-repair.ts';
import { readImageFacts } from '../../../src/formats/read-image-facts.ts';
import {
  compressIndices,
  control,
  type DrawnFrame,
  drawGif,
} from '../../support/images/draw-gif.ts';
import { decodeImage } from '../../support/images/image-comparison.ts';
import { shareTestApp } from '../../support/test-app.ts';
import { corpusFile, corpusFiles, factsOf } from '../facts-of.ts';

const animated = corpusFiles('gif-animated').map(corpusFile);

/** Disposals as they stand in the packed field, without and with the transparency flag. */
const KEEP = 1 << 2;
const CLEAR = 2 << 2;
const FLAG = 1;

const repair = (gif: Buffer): Uint8Array => repairGif(gif, factsOf(gif));

/** Pixels as `rrggbb`, 0 for a transparent one; all of them row by row, or every `step`th. */
async function look(image: Uint8Array, frame: number, step = 1): Promise<string[]> {
  const { frames, widthPx, heightPx } = await decodeImage(image);
  const data = Buffer.from(frames[frame] ?? []);
  const rows: string[] = [];
  for (let y = 0; y < heightPx; y += step) {
    const row: string[] = [];
    for (let x = 0; x < widthPx; x += step) {
      const [colour, alpha] = [(y * widthPx + x) * 4, data[(y * widthPx + x) * 4 + 3]];
      expect([0, 255]).toContain(alpha);
      row.push(alpha === 0 ? '0' : data.toString('hex', colour, colour + 3));
    }
    rows.push(row.join(' '));
  }
  return rows;
}

/** Indices out of `colours`, in an order that repeats itself enough to be packed. */
function drawPixels(seed: number, count: number, colours: readonly number[]): number[] {
  let state = seed;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const among = state & 0x1000_0000 ? colours.length : Math.min(4, colours.length);
    return colours[(state >>> 16) % among] ?? 0;
  });
}

const red = 'ff0000';
const green = '00ff00';
const blue = '0000ff';

/** What Chromium 156 shows (its `ImageDecoder`); the 100 px ones at a few points. */
const seen = [
  {
    file: 'gif-animated/imagers__border_touching_layers.gif',
    step: 30,
    frames: [
      [
        '0 0 0 0',
        `${green} ${green} ${green} ${green}`,
        `${green} ${green} ${green} ${green}`,
        '0 0 0 0',
      ],
    ],
  },
  {
    file: 'gif-animated/imagers__issue_1455_undersized.gif',
    step: 25,
    frames: [
      [`${red} ${red} 0 0`, `${red} ${red} 0 0`, '0 0 0 0', '0 0 0 0'],
      ['0 0 0 0', '0 0 0 0', `0 0 ${blue} ${blue}`, `0 0 ${blue} ${blue}`],
    ],
  },
  {
    file: 'gif-animated/wuffs__frame-out-of-bounds.gif',
    step: 1,
    frames: [
      ['0 1100ff 2200ff 3300ff', '0 0 0 0'],
      ['0 1100ff 2200ff 3300ff', '0088ff 0099ff 0 0'],
      ['0 1100ff 2200ff 3300ff', '0088ff 0099ff 0 0'],
      ['0 1100ff 4400ff 5500ff', '0088ff 0099ff 0088ff 0099ff'],
    ],
  },
  {
    file: 'gif-animated/wuffs__multiple-loop-counts.gif',
    step: 1,
    frames: Array.from({ length: 4 }, () => ['0000ff 0', '0 0']),
  },
  {
    file: 'gif-animated/wuffs__background-color.gif',
    step: 1,
    frames: [['800000 8000c1 0 0'], ['0 0 80c200 0']],
  },
] as const;

describe('through the service', () => {
  const app = shareTestApp();

  async function request(original: Uint8Array, way: string): Promise<Buffer> {
    const { statusCode, rawPayload } = await app.serve(original, `/avatars/{id}/${way}`);
    expect(statusCode).toBe(200);
    return rawPayload;
  }

  test.each(seen)('$file shows what browsers show', async ({ file, step, frames }) => {
    const original = corpusFile(file);
    const still = await request(original, 'x.png?size=128');
    expect(await look(still, 0, step)).toEqual(frames[0]);

    const webp = await request(original, 'x.webp?size=128&quality=lossless&animated=true');
    expect(readImageFacts(webp)?.animation).toEqual(factsOf(original).animation);
    for (const [index, frame] of frames.entries()) {
      expect(await look(webp, index, step), `frame ${index + 1}`).toEqual(frame);
    }
  });

  test('a gif of another size has the transparency too', async () => {
    const original = corpusFile('gif-animated/imagers__issue_1455_undersized.gif');
    const gif = await request(original, 'x.gif?size=40');
    expect(readImageFacts(gif)?.animation).toEqual(factsOf(original).animation);
    expect(await look(gif, 0, 10)).toEqual([
      ...[`${red} ${red} 0 0`, `${red} ${red} 0 0`, '0 0 0 0', '0 0 0 0'],
    ]);
    expect(await look(gif, 1, 10)).toEqual([
      // A pixel of the edge was half transparent, and libvips cuts off what it divides by that.
      ...['0 0 0 0', '0 0 0 0', `0 0 0000fe ${blue}`, `0 0 ${blue} ${blue}`],
    ]);
  });

  test('what passes through stays as it is', async () => {
    const original = corpusFile('gif-animated/imagers__issue_1455_undersized.gif');
    const before = app.renderer.renders;
    expect(await request(original, 'x.gif?size=128')).toEqual(original);
    expect(app.renderer.renders).toBe(before);
  });
});

describe('a repaired gif', () => {
  const pixel: DrawnFrame = { widthPx: 1, pixels: [1] };
  const screen = { widthPx: 2, heightPx: 1, indexBits: 1 } as const;

  test('has its frames, delays and loops, with and without extensions of its own', () => {
    const gif = drawGif({
      ...screen,
      repeats: 6,
      frames: [
        [],
        [control(CLEAR, 300)],
        [control(KEEP, 7, 1)],
        [control(KEEP), control(KEEP, 65_535)],
      ].map((controls) => ({ ...pixel, controls })),
    });
    const repaired = repair(gif);
    expect(repaired.length).toBe(gif.length + 4 * 8);
    expect(factsOf(repaired)).toMatchObject({
      frames: 4,
      animation: { delaysMs: [100, 3000, 70, 655_350], plays: 7 },
    });
  });

  test('is transparent where nothing has been painted, and nowhere else', async () => {
    const gif = drawGif({ ...screen, frames: [pixel] });
    expect(await look(gif, 0)).toEqual(['01fe07 000000']);
    expect(await look(repair(gif), 0)).toEqual(['01fe07 0']);
  });

  test('is cleared where an opaque frame was, though another frame has the flag', async () => {
    const both: DrawnFrame = { widthPx: 2, pixels: [1, 1], controls: [[CLEAR, 10, 0]] };
    const flagged: DrawnFrame = { ...pixel, controls: [[KEEP | FLAG, 10, 0]] };
    const gif = drawGif({ ...screen, frames: [both, flagged] });
    expect(await look(gif, 1)).toEqual(['01fe07 00ff07']);
    expect(await look(repair(gif), 1)).toEqual(['01fe07 0']);
  });

  test('keeps a flag that libnsgif takes from an earlier extension of the frame', async () => {
    const controls = [control(FLAG), control(CLEAR, 20, 1)];
    const twice: DrawnFrame = { ...pixel, controls };
    const gif = drawGif({ ...screen, frames: [twice, { ...pixel, pixels: [0] }] });
    expect(await look(gif, 0)).toEqual(['01fe07 0']);
    expect(repair(gif)).toBe(gif);
  });

  test('is one with a full table too, as long as an index is left over', async () => {
    const colours = [...Array(256).keys()].filter((index) => index !== 77);
    const pixels = drawPixels(1, 200 * 50, colours);
    expect(new Set(pixels).size).toBe(255);
    const frame: DrawnFrame = { widthPx: 200, pixels };
    const gif = drawGif({ widthPx: 200, heightPx: 51, indexBits: 8, frames: [frame] });
    const repaired = repair(gif);
    const { frames: before } = await decodeImage(gif);
    const { frames: after } = await decodeImage(repaired);
    const painted = 200 * 50 * 4;
    expect(after[0]?.subarray(0, painted)).toEqual(before[0]?.subarray(0, painted));
    expect(new Set(after[0]?.subarray(painted))).toEqual(new Set([0]));
  });

  test('is the same gif where every frame uses all 256 indices: a known gap', async () => {
    const pixels = Array.from({ length: 256 }, (_, index) => index);
    const full = drawGif({
      widthPx: 256,
      heightPx: 2,
      indexBits: 8,
      frames: [{ widthPx: 256, pixels }],
    });
    expect(repair(full)).toBe(full);
    expect((await look(full, 0))[1]).toMatch(/^000000/);
  });
});

describe('nothing is repaired', () => {
  const whole: DrawnFrame = { widthPx: 2, pixels: [0, 1] };
  const disposed: DrawnFrame = { ...whole, controls: [[CLEAR, 10, 0]] };
  const half: DrawnFrame = { widthPx: 1, pixels: [1] };

  test.each([
    ['where the first frame fills the canvas', [whole, half]],
    ['where the next frame covers what was disposed', [disposed, disposed, whole]],
    ['where the disposed frame is the last', [whole, disposed]],
    ['where a frame has the flag already', [{ ...half, controls: [[FLAG, 10, 0]] }, half]],
    ['where there is no frame', []],
  ] as const)('%s', (_, frames) => {
    const gif = drawGif({ widthPx: 2, heightPx: 1, indexBits: 1, frames });
    expect(repairGif(gif, { widthPx: 2, heightPx: 1 })).toBe(gif);
  });

  test('in the corpus, but for these', () => {
    const files = corpusFiles('gif-animated', 'gif-delays', 'gif-manyframes', 'gif-static');
    expect(files.length).toBeGreaterThan(30);
    const repaired = files.filter((file) => {
      const gif = corpusFile(file);
      return repair(gif) !== gif;
    });
    expect(repaired).toEqual([
      'gif-animated/imagers__border_touching_layers.gif',
      'gif-animated/imagers__issue_1455_undersized.gif',
      'gif-animated/wuffs__background-color.gif',
      'gif-animated/wuffs__frame-out-of-bounds.gif',
      'gif-animated/wuffs__metadata-empty.gif',
      'gif-animated/wuffs__metadata-full.gif',
      'gif-animated/wuffs__multiple-loop-counts.gif',
      'gif-animated/wuffs__small-frame-interlaced.gif',
    ]);
  });

  test('where the file ends within a block', () => {
    const gif = corpusFile('gif-animated/wuffs__multiple-loop-counts.gif');
    for (let bytes = 0; bytes < gif.length; bytes += 1) {
      const start = gif.subarray(0, bytes);
      const isRepaired = repairGif(start, { widthPx: 2, heightPx: 2 }) !== start;
      expect(isRepaired, `${bytes} bytes`).toBe(attempt(() => factsOf(start)) !== undefined);
    }
  });
});

test('whatever the bytes, it does not throw and changes no fact', () => {
  const small = animated.filter(({ length }) => length < 5000);
  const change = fc.tuple(fc.nat(5000), fc.nat(255));
  fc.assert(
    fc.property(fc.constantFrom(...small), fc.array(change, { maxLength: 6 }), (gif, changes) => {
      const mutated = Buffer.from(gif);
      for (const [at, value] of changes) mutated[at % gif.length] = value;
      const repaired = repairGif(mutated, { widthPx: 50, heightPx: 50 });
      if (repaired === mutated) return;
      expect(attempt(() => factsOf(repaired))).toEqual(attempt(() => factsOf(mutated)));
      expect(repairGif(repaired, { widthPx: 50, heightPx: 50 }).length).toBe(repaired.length);
    }),
    { numRuns: 3000 },
  );
});

function attempt<Result>(action: () => Result): Result | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

describe('an unused index', () => {
  test('is one that no pixel has, if there is one', () => {
    const colours = fc.uniqueArray(fc.nat(255), { minLength: 1, maxLength: 256 });
    fc.assert(
      fc.property(fc.nat(), fc.nat(30_000), colours, fc.boolean(), (seed, count, some, clears) => {
        const pixels = drawPixels(seed, count + 1, some);
        const used = new Set(pixels);
        const index = findUnusedIndex(compressIndices(pixels, 8, { clears }), 0);
        expect(index).toBe(Array.from({ length: 256 }, (_, i) => i).find((i) => !used.has(i)));
      }),
    );
  });

  test('is none where all 256 occur', () => {
    const pixels = drawPixels(1, 60_000, [...Array(256).keys()]);
    expect(new Set(pixels).size).toBe(256);
    for (const clears of [true, false]) {
      expect(findUnusedIndex(compressIndices(pixels, 8, { clears }), 0)).toBeUndefined();
    }
  });

  test.each([2, 4, 7])('is the last of all where a root code has %i bits', (rootBits) => {
    expect(findUnusedIndex(compressIndices([0, 1, 2, 3], rootBits), 0)).toBe(255);
  });
});
