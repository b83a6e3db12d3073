import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { join, u32be } from '../../formats/containers.ts';
import {
  alphaProperty,
  box,
  createHeif,
  EXTENTS_OUTSIDE,
  type HeifChoices,
  type HeifItem,
  imageSize,
  u16be,
} from '../../support/images/heif-file.ts';
import * as ways from '../ways.ts';
import { type Bomb, bombs, fill, forEach, LARGEST_BYTES, MEBIBYTE, times } from './bomb.ts';
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
function takeApart(avif: Buffer): Pick<HeifItem, 'type' | 'data' | 'properties'> {
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
function item(avif: Buffer, widthPx: number, heightPx: number, ...more: Uint8Array[]): HeifItem {
  const { properties, ...rest } = takeApart(avif);
  return { ...rest, properties: [imageSize(widthPx, heightPx), ...properties, ...more] };
}

/** A file of 16×16 px with an EXIF block beside its image. */
export function avifWithExif(avif: Buffer, tiff: Buffer): Buffer {
  const exif = { type: 'Exif', data: join(u32be(0), tiff), properties: [] };
  return createHeif([item(avif, 16, 16), { ...exif, references: [['cdsc', [1]]] }]);
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
): HeifItem {
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
const ids = (count: number, id: number): number[] => Array.from({ length: count }, () => id);

/** A square grid of so many rows, all of one small tile, that makes and says squares of these sizes. */
async function tiles(rows: number, tilePx: number, edgePx: number, saidPx = edgePx) {
  const data = grid(rows, rows, edgePx, edgePx);
  return createHeif([
    derived('grid', data, ids(rows * rows, 2), saidPx, saidPx),
    item(await small(tilePx), tilePx, tilePx),
  ]);
}

/** An overlay of one small image, so many times. */
async function overlaid(count: number, edgePx: number, saidPx = edgePx): Promise<Buffer> {
  return createHeif([
    derived('iovl', overlay(edgePx, edgePx, count), ids(count, 2), saidPx, saidPx),
    item(await small(64), 64, 64),
  ]);
}

/** 16×16 px with more properties. */
async function tiny(...properties: readonly Uint8Array[]): Promise<Buffer> {
  return createHeif([item(await small(16), 16, 16, ...properties)]);
}

/** 16×16 px whose item says otherwise where it is, or stands among other boxes. */
async function lying(lies: HeifChoices): Promise<Buffer> {
  return createHeif([item(await small(16), 16, 16)], lies);
}

/** An item of 16×16 px and so many others, which have properties and no data. */
async function manyItems(others: number, properties: readonly Uint8Array[]): Promise<Buffer> {
  const one = item(await small(16), 16, 16);
  const other = { ...one, data: Buffer.alloc(0), properties };
  return createHeif([one, ...Array.from({ length: others }, () => other)]);
}

const squares = [10_000, 12_000, 16_384] as const;
const emptyBoxes = (): Buffer => fill(LARGEST_BYTES - 4096, box('free'));

export const avifBombs: readonly Bomb[] = [
  ...bombs('refused unseen', ways.everyWay, {
    '12000×12000': () => square(12_000),
    '16384×16384': () => square(16_384),
    'a size of 4 thousand million': async () => saying(await small(16), 0xffff_ffff, 0xffff_ffff),
  }),
  ...bombs('refused unseen', large, {
    ...forEach(
      ['grid', 'iovl', 'iden'],
      (type) => `${type} items made of each other`,
      (type) => {
        const data = type === 'grid' ? grid(1, 1, 64, 64) : overlay(64, 64, 1);
        return createHeif([2, 3, 1].map((other) => derived(type, data, [other], 64, 64)));
      },
    ),
    'a small image first, and a huge one behind it': async () =>
      join(await small(16), square(10_000)),
    ...forEach(
      EXTENTS_OUTSIDE,
      ([offset, length]) => `an extent of ${length} bytes at ${offset}`,
      (extent) => lying({ extents: [extent] }),
    ),
  }),
  ...bombs('served', large, {
    'EXIF in circles': async () => avifWithExif(await small(16), exifInCircles()),
  }),
  ...bombs('any', [ways.stillSmall], {
    '10000×10000': () => square(10_000),
    'turns of 100 million px': () =>
      createHeif([item(square(10_000), 10_000, 10_000, ...Array.from({ length: 50 }, () => turn))]),
  }),
  ...bombs('any', ways.everyWay, {
    '85 apertures, turns and mirrors': () => {
      const cut = clap(16, 1, 16, 1, 0, 1, 0, 1);
      return tiny(...Array.from({ length: 80 }, () => [cut, turn, mirror]).flat());
    },
  }),
  ...bombs('any', large, {
    ...forEach(
      squares,
      (edgePx) => `${edgePx}×${edgePx} that says 16×16`,
      (edgePx) => saying(square(edgePx), 16, 16),
    ),
    ...forEach(
      squares,
      (edgePx) => `${edgePx}×${edgePx} that says 4000×4000`,
      (edgePx) => saying(square(edgePx), 4000, 4000),
    ),
    '16×16 that says 10000×10000': async () => saying(await small(16), 10_000, 10_000),
    '16×16 with an alpha plane of 16384×16384': async () =>
      createHeif([
        item(await small(16), 16, 16),
        { ...item(square(16_384), 16, 16, alphaProperty), references: [['auxl', [1]]] },
      ]),
    'alpha planes that are each other’s': async () =>
      createHeif([
        { ...item(await small(16), 16, 16), references: [['auxl', [2]]] },
        { ...item(await small(16), 16, 16, alphaProperty), references: [['auxl', [1, 2]]] },
      ]),
    'a grid of 255×255 tiles of 64×64, 64×64 in all': () => tiles(255, 64, 64),
    'a grid of 255×255 tiles that says 64×64': () => tiles(255, 64, 16_320, 64),
    'a grid of 16×16 tiles of 600×600': () => tiles(16, 600, 9_600),
    'a grid of 150×150 tiles of 64×64': () => tiles(150, 64, 9_600),
    'a grid of one tile, which is 16384×16384': () =>
      createHeif([derived('grid', grid(1, 1, 64, 64), [2], 64, 64), item(square(16_384), 64, 64)]),
    'an overlay of 60 000 images': () => overlaid(60_000, 2_000),
    'an overlay of 65535×65535 that says 64×64': () => overlaid(1, 65_535, 64),
    'an item made of itself': () => createHeif([derived('iden', Buffer.alloc(0), [1], 64, 64)]),
    'an aperture larger than the image': () => tiny(clap(9_000, 1, 9_000, 1, 0, 1, 0, 1)),
    'an aperture of a fraction of nothing': () =>
      tiny(clap(1, 4_000_000_000, 1, 4_000_000_000, 0, 1, 0, 1)),
    'an aperture far away': () => tiny(clap(8, 1, 8, 1, -2_000_000_000, 1, 2_000_000_000, 1)),
    '19 000 items': () => manyItems(18_999, []),
    '15 000 properties': () =>
      manyItems(
        150,
        Array.from({ length: 100 }, () => turn),
      ),
    '60 000 extents over the same megabytes': async () => {
      const one = item(await small(16), 16, 16);
      const data = Buffer.concat([one.data, Buffer.alloc(8 * MEBIBYTE)]);
      const extents = Array.from({ length: 60_000 }, () => [0n, BigInt(data.length)] as const);
      return createHeif([{ ...one, data }], { extents });
    },
    'boxes within boxes, 100 000 deep': () => lying({ extraBoxes: [nested(100_000)] }),
    'six million boxes within meta': () => lying({ extraBoxes: [emptyBoxes()] }),
    'six million boxes before the first item': async () => {
      const avif = await small(16);
      return join(avif.subarray(0, 32), emptyBoxes(), avif.subarray(32));
    },
    '16 million associations of no property': async () => {
      const associations = box(
        'ipma',
        u32be(0),
        u32be(16_000_000),
        times(16_000_000, join(u16be(9), 0)),
      );
      const avif = await tiny();
      // In the place of the right ones, which follow it.
      const at = avif.indexOf('ipma', 0, 'latin1') - 4;
      const longer = join(avif.subarray(0, at), associations, avif.subarray(at));
      for (const type of ['meta', 'iprp']) {
        const size = longer.indexOf(type, 0, 'latin1') - 4;
        longer.writeUInt32BE(longer.readUInt32BE(size) + associations.length, size);
      }
      return longer;
    },
  }),
];
