import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import type { Size } from '../image-header.ts';
import { toFullBox } from './heif-boxes.ts';
import { type HeifFile, readItem } from './heif-file.ts';

/** Maximum bytes of a grid: version, flags, rows, columns, two sides of 16 or 32 bits (ISO/IEC 23008-12 §6.6.2.3.2). */
const MAX_GRID_BYTES = 12;

/** Maximum bytes of a coded image: thousands of tiles that share megabytes would be terabytes to read. */
const MAX_BYTES_PER_PIXEL = 16;
const MAX_EXTRA_BYTES = 64 * 1024;

/** Minimum pixels counted per tile, since each has a decoder: 14 400 tiles of 96×64 px exceeded a render's 15 s. */
const MIN_TILE_PIXELS = 256 * 128;

/** Maximum length of a chain of items that repeat one another. */
const MAX_IDENTITIES = 8;

/** Alpha types: ISO/IEC 23008-12 §6.9.1.2, and HEVC's older name. */
const ALPHA_KINDS = ['urn:mpeg:mpegB:cicp:systems:auxiliary:alpha', 'urn:mpeg:hevc:2015:auxid:1'];

/**
 * Counts the decoded pixels of an item: its own before `clap`, those of its sources for each use, or those of its alpha
 * plane if these are more. @throws MediaError for a missing or empty part, or a grid that is not covered
 */
export function countCodedPixels(heif: HeifFile, item: number): number {
  const alpha = findAlphaPlanes(heif, item).flatMap((plane) => {
    const size = heif.codedSizeOf(plane);
    // Without `ispe`, the size of a plane is in its data, which the decoder checks.
    const isCounted = size !== undefined || heif.types.get(plane) === 'grid';
    return isCounted ? countPixels(heif, plane) : [];
  });
  return Math.max(countPixels(heif, item), ...alpha);
}

/**
 * Returns the images that an item repeats by `iden`, each with further transforms (ISO/IEC 23008-12 §6.6.2.1): from the
 * coded image, grid or overlay to the item. @throws MediaError for a long chain
 */
export function followIdentity(heif: HeifFile, item: number): readonly number[] {
  const chain = [item];
  for (let first = item; heif.types.get(first) === 'iden'; chain.unshift(first)) {
    const [source, ...others] = heif.sourcesOf(first);
    if (source === undefined || others.length > 0 || chain.length === MAX_IDENTITIES) {
      throw corruptMedia(`HEIF: image ${item} repeats no image`);
    }
    first = source;
  }
  return chain;
}

/** Returns the alpha planes of an item, of which a valid file has at most one. */
export function findAlphaPlanes(heif: HeifFile, item: number): number[] {
  return followIdentity(heif, item)
    .flatMap((image) => heif.referrersOf(image, 'auxl'))
    .filter((plane) => isAlpha(heif, plane));
}

export function findTiles(heif: HeifFile, item: number): ReadonlySet<number> {
  const shown = [...followIdentity(heif, item), ...findAlphaPlanes(heif, item)];
  const grids = shown.filter((part) => heif.types.get(part) === 'grid');
  return new Set(grids.flatMap((grid) => heif.sourcesOf(grid)));
}

/** Whether an auxiliary image is an alpha plane (`auxC`), and not for example a depth map. */
function isAlpha({ meta, propertiesOf }: HeifFile, item: number): boolean {
  const kind = propertiesOf(item).find(({ type }) => type === 'auxC');
  if (kind === undefined) return false;
  const { start } = toFullBox(meta.reader, kind);
  return ALPHA_KINDS.some(
    (alpha) => start + alpha.length < kind.end && hasAscii(meta.reader.bytes, start, `${alpha}\0`),
  );
}

function countPixels(heif: HeifFile, shown: number): number {
  const [item = shown] = followIdentity(heif, shown);
  const type = heif.types.get(item);
  if (type === 'grid') return countGrid(heif, item);
  const sources = type === 'iovl' ? heif.sourcesOf(item) : [];
  return sources.length === 0
    ? countCoded(heif, item)
    : sources.reduce((sum, source) => sum + countCoded(heif, source), 0);
}

function countGrid(heif: HeifFile, item: number): number {
  const { rows, columns, widthPx, heightPx } = readGrid(heif, item);
  const tiles = heif.sourcesOf(item);
  if (tiles.length !== rows * columns) {
    throw corruptMedia(`HEIF: a grid of ${rows}x${columns} has ${tiles.length} tiles`);
  }
  const sizes = tiles.map((tile) => sizeOf(heif, tile));
  const [first] = sizes;
  if (first === undefined) throw corruptMedia('HEIF: a grid without tiles');
  for (const tile of sizes) {
    if (tile.widthPx !== first.widthPx || tile.heightPx !== first.heightPx) {
      throw corruptMedia('HEIF: a grid of tiles of different sizes');
    }
  }
  if (!isCovered(widthPx, first.widthPx, columns) || !isCovered(heightPx, first.heightPx, rows)) {
    const tile = `${first.widthPx}x${first.heightPx}`;
    throw corruptMedia(`HEIF: ${columns}x${rows} tiles of ${tile} px for ${widthPx}x${heightPx}`);
  }
  return tiles.reduce((sum, tile) => sum + Math.max(countCoded(heif, tile), MIN_TILE_PIXELS), 0);
}

/** Whether adjacent tiles cover an edge, and none is completely beyond it. */
function isCovered(edgePx: number, tilePx: number, tiles: number): boolean {
  return tilePx * tiles >= edgePx && tilePx * (tiles - 1) < edgePx;
}

/** Reads the layout of an image grid (§6.6.2.3), row by row. */
export function readGrid(heif: HeifFile, item: number) {
  const reader = new ByteReader(readItem(heif, item, MAX_GRID_BYTES), 'HEIF grid');
  const isWide = (reader.u8(1) & 1) === 1;
  return {
    rows: reader.u8(2) + 1,
    columns: reader.u8(3) + 1,
    widthPx: isWide ? reader.u32be(4) : reader.u16be(4),
    heightPx: isWide ? reader.u32be(8) : reader.u16be(6),
  };
}

function sizeOf({ codedSizeOf }: HeifFile, item: number): Size {
  const size = codedSizeOf(item);
  if (size === undefined) throw corruptMedia(`HEIF: image ${item} has no size`);
  return size;
}

function countCoded(heif: HeifFile, item: number): number {
  const bytes = heif.bytesOf(item);
  const { widthPx, heightPx } = sizeOf(heif, item);
  const pixels = widthPx * heightPx;
  if (bytes === 0) throw corruptMedia(`HEIF: image ${item} is empty`);
  if (bytes > pixels * MAX_BYTES_PER_PIXEL + MAX_EXTRA_BYTES) {
    throw corruptMedia(`HEIF: image ${item} of ${pixels} px has ${bytes} bytes`);
  }
  return pixels;
}
