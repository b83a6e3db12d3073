import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { join, u32be } from '../../formats/containers.ts';
import * as ways from '../ways.ts';
import { type AvifItem, alphaProperty, box, createAvif, imageSize, u16be } from './avif-file.ts';
import { type Bomb, bomb, LARGEST_BYTES, repeat } from './bomb.ts';
import { exifInCircles } from './metadata-bombs.ts';

/**
 * White squares of 10 000, 12 000 and 16 384 px, which take libaom up to half a minute to encode and
 * so are stored: sharp 0.35.5, `create` of three channels, `avif({ effort: 0, quality: 30 })`.
 */
function square(edgePx: 10_000 | 12_000 | 16_384): Buffer {
  return readFileSync(new URL(`../../../fixtures/flat-avif/${edgePx}.avif`, import.meta.url));
}

/** The file with other numbers in its `ispe`. */
function saying(avif: Buffer, widthPx: number, heightPx: number): Buffer {
  const lying = Buffer.from(avif);
  const at = lying.indexOf('ispe', 0, 'latin1') + 8;
  lying.writeUInt32BE(widthPx, at);
  lying.writeUInt32BE(heightPx, at + 4);
  return lying;
}

/** The coded image of a file of one item, and the properties that are not its size. */
function takeApart(avif: Buffer): Pick<AvifItem, 'type' | 'data' | 'properties'> {
  const property = (type: string): Buffer => {
    const at = avif.indexOf(type, 0, 'latin1') - 4;
    return avif.subarray(at, at + avif.readUInt32BE(at));
  };
  return {
    type: 'av01',
    data: avif.subarray(avif.indexOf('mdat', 0, 'latin1') + 4),
    properties: [property('av1C'), property('pixi')],
  };
}

async function small(edgePx: number): Promise<Buffer> {
  return sharp({ create: { width: edgePx, height: edgePx, channels: 3, background: '#c33' } })
    .avif({ effort: 0 })
    .toBuffer();
}

/** An item that shows a file's image and is said to have a size. */
function item(avif: Buffer, widthPx: number, heightPx: number, ...more: Uint8Array[]): AvifItem {
  const { properties, ...rest } = takeApart(avif);
  return { ...rest, properties: [imageSize(widthPx, heightPx), ...properties, ...more] };
}

/** A file of 16×16 px with an EXIF block beside its image. */
export function avifWithExif(avif: Buffer, tiff: Buffer): Buffer {
  const exif = { type: 'Exif', data: join(u32be(0), tiff), properties: [] };
  return createAvif([item(avif, 16, 16), { ...exif, references: [['cdsc', [1]]] }]);
}

/** An image grid (ISO/IEC 23008-12 §6.6.2.3.2) with sides of 32 bits. */
function grid(rows: number, columns: number, widthPx: number, heightPx: number): Buffer {
  return join(0, 1, rows - 1, columns - 1, u32be(widthPx), u32be(heightPx));
}

/** An image overlay (§6.6.2.2.2) of so many images, all in the corner. */
function overlay(widthPx: number, heightPx: number, images: number): Buffer {
  return join(
    0,
    1,
    Buffer.alloc(8, 0xff),
    u32be(widthPx),
    u32be(heightPx),
    Buffer.alloc(8 * images),
  );
}

function derived(
  type: string,
  data: Uint8Array,
  from: readonly number[],
  widthPx: number,
  heightPx: number,
): AvifItem {
  return { type, data, properties: [imageSize(widthPx, heightPx)], references: [['dimg', from]] };
}

function clap(...fields: readonly number[]): Buffer {
  return box('clap', ...fields.map((field) => u32be(field >>> 0)));
}

const turn = box('irot', 1);
const mirror = box('imir', 1);

function nested(depth: number): Buffer {
  const bytes = Buffer.alloc(8 * depth);
  for (let level = 0; level < depth; level += 1) {
    bytes.writeUInt32BE(8 * (depth - level), 8 * level);
    bytes.write('dinf', 8 * level + 4, 'latin1');
  }
  return bytes;
}

const large = [ways.stillSmall, ways.jpeg];
const times = (count: number, id: number): number[] => Array.from({ length: count }, () => id);

export const avifBombs: readonly Bomb[] = [
  bomb('12000×12000', ways.everyWay, () => square(12_000), 'refused unseen'),
  bomb('16384×16384', ways.everyWay, () => square(16_384), 'refused unseen'),
  bomb('10000×10000', [ways.stillSmall], () => square(10_000)),
  ...([10_000, 12_000, 16_384] as const).flatMap((edgePx) => [
    bomb(`${edgePx}×${edgePx} that says 16×16`, large, () => saying(square(edgePx), 16, 16)),
    bomb(`${edgePx}×${edgePx} that says 4000×4000`, large, () =>
      saying(square(edgePx), 4000, 4000),
    ),
  ]),
  bomb('16×16 that says 10000×10000', large, async () => saying(await small(16), 10_000, 10_000)),
  bomb(
    'a size of 4 thousand million',
    ways.everyWay,
    async () => saying(await small(16), 0xffff_ffff, 0xffff_ffff),
    'refused unseen',
  ),
  bomb('16×16 with an alpha plane of 16384×16384', large, async () =>
    createAvif([
      item(await small(16), 16, 16),
      { ...item(square(16_384), 16, 16, alphaProperty), references: [['auxl', [1]]] },
    ]),
  ),
  bomb('alpha planes that are each other’s', large, async () =>
    createAvif([
      { ...item(await small(16), 16, 16), references: [['auxl', [2]]] },
      { ...item(await small(16), 16, 16, alphaProperty), references: [['auxl', [1, 2]]] },
    ]),
  ),
  bomb('a grid of 255×255 tiles of 64×64, 64×64 in all', large, async () =>
    createAvif([
      derived('grid', grid(255, 255, 64, 64), times(255 * 255, 2), 64, 64),
      item(await small(64), 64, 64),
    ]),
  ),
  bomb('a grid of 255×255 tiles that says 64×64', large, async () =>
    createAvif([
      derived('grid', grid(255, 255, 16_320, 16_320), times(255 * 255, 2), 64, 64),
      item(await small(64), 64, 64),
    ]),
  ),
  bomb('a grid of 16×16 tiles of 600×600', large, async () =>
    createAvif([
      derived('grid', grid(16, 16, 9_600, 9_600), times(256, 2), 9_600, 9_600),
      item(await small(600), 600, 600),
    ]),
  ),
  bomb('a grid of 150×150 tiles of 64×64', large, async () =>
    createAvif([
      derived('grid', grid(150, 150, 9_600, 9_600), times(150 * 150, 2), 9_600, 9_600),
      item(await small(64), 64, 64),
    ]),
  ),
  bomb('a grid of one tile, which is 16384×16384', large, () =>
    createAvif([derived('grid', grid(1, 1, 64, 64), [2], 64, 64), item(square(16_384), 64, 64)]),
  ),
  bomb('an overlay of 60 000 images', large, async () =>
    createAvif([
      derived('iovl', overlay(2_000, 2_000, 60_000), times(60_000, 2), 2_000, 2_000),
      item(await small(64), 64, 64),
    ]),
  ),
  bomb('an overlay of 65535×65535 that says 64×64', large, async () =>
    createAvif([
      derived('iovl', overlay(65_535, 65_535, 1), [2], 64, 64),
      item(await small(64), 64, 64),
    ]),
  ),
  ...['grid', 'iovl', 'iden'].map((type) =>
    bomb(
      `${type} items made of each other`,
      large,
      () => {
        const data = type === 'grid' ? grid(1, 1, 64, 64) : overlay(64, 64, 1);
        return createAvif([
          derived(type, data, [2], 64, 64),
          derived(type, data, [3], 64, 64),
          derived(type, data, [1], 64, 64),
        ]);
      },
      'refused unseen',
    ),
  ),
  bomb('an item made of itself', large, () =>
    createAvif([derived('iden', Buffer.alloc(0), [1], 64, 64)]),
  ),
  bomb('an aperture larger than the image', large, async () =>
    createAvif([item(await small(16), 16, 16, clap(9_000, 1, 9_000, 1, 0, 1, 0, 1))]),
  ),
  bomb('an aperture of a fraction of nothing', large, async () =>
    createAvif([
      item(await small(16), 16, 16, clap(1, 4_000_000_000, 1, 4_000_000_000, 0, 1, 0, 1)),
    ]),
  ),
  bomb('an aperture far away', large, async () =>
    createAvif([
      item(await small(16), 16, 16, clap(8, 1, 8, 1, -2_000_000_000, 1, 2_000_000_000, 1)),
    ]),
  ),
  bomb('85 apertures, turns and mirrors', ways.everyWay, async () => {
    const cut = clap(16, 1, 16, 1, 0, 1, 0, 1);
    const steps = Array.from({ length: 80 }, () => [cut, turn, mirror]).flat();
    return createAvif([item(await small(16), 16, 16, ...steps)]);
  }),
  bomb(
    'a small image first, and a huge one behind it',
    large,
    async () => join(await small(16), square(10_000)),
    'refused unseen',
  ),
  bomb('turns of 100 million px', [ways.stillSmall], () =>
    createAvif([item(square(10_000), 10_000, 10_000, ...Array.from({ length: 50 }, () => turn))]),
  ),
  bomb(
    'EXIF in circles',
    large,
    async () => avifWithExif(await small(16), exifInCircles()),
    'served',
  ),
  bomb('19 000 items', large, async () => {
    const one = item(await small(16), 16, 16);
    const others = Array.from({ length: 18_999 }, () => ({
      ...one,
      data: Buffer.alloc(0),
      properties: [],
    }));
    return createAvif([one, ...others]);
  }),
  bomb('15 000 properties', large, async () => {
    const one = item(await small(16), 16, 16);
    const many = Array.from({ length: 100 }, () => turn);
    const others = Array.from({ length: 150 }, () => ({
      ...one,
      data: Buffer.alloc(0),
      properties: many,
    }));
    return createAvif([one, ...others]);
  }),
  bomb('60 000 extents over the same megabytes', large, async () => {
    const one = item(await small(16), 16, 16);
    const bulk = Buffer.concat([one.data, Buffer.alloc(8 * 2 ** 20)]);
    const extents = Array.from({ length: 60_000 }, () => [0n, BigInt(bulk.length)] as const);
    return createAvif([{ ...one, data: bulk }], { extents: new Map([[1, extents]]) });
  }),
  ...[
    [2n ** 63n, 16n],
    [2n ** 64n - 16n, 32n],
    [16n, 2n ** 64n - 8n],
  ].map(([offset = 0n, length = 0n]) =>
    bomb(
      `an extent of ${length} bytes at ${offset}`,
      large,
      async () =>
        createAvif([item(await small(16), 16, 16)], {
          extents: new Map([[1, [[offset, length]]]]),
        }),
      'refused unseen',
    ),
  ),
  bomb('boxes within boxes, 100 000 deep', large, async () =>
    createAvif([item(await small(16), 16, 16)], { extraBoxes: [nested(100_000)] }),
  ),
  bomb('six million boxes before the first item', large, async () => {
    const avif = await small(16);
    return join(avif.subarray(0, 32), repeat(box('free'), LARGEST_BYTES - 4096), avif.subarray(32));
  }),
  bomb('six million boxes within meta', large, async () =>
    createAvif([item(await small(16), 16, 16)], {
      extraBoxes: [repeat(box('free'), LARGEST_BYTES - 4096)],
    }),
  ),
  bomb('16 million associations of no property', large, async () => {
    const associations = box(
      'ipma',
      u32be(0),
      u32be(16_000_000),
      repeat(join(u16be(9), 0), 16_000_000 * 3),
    );
    const avif = createAvif([item(await small(16), 16, 16)]);
    // In the place of the right ones, which follow it.
    const at = avif.indexOf('ipma', 0, 'latin1') - 4;
    const longer = join(avif.subarray(0, at), associations, avif.subarray(at));
    for (const type of ['meta', 'iprp']) {
      const size = longer.indexOf(type, 0, 'latin1') - 4;
      longer.writeUInt32BE(longer.readUInt32BE(size) + associations.length, size);
    }
    return longer;
  }),
];
