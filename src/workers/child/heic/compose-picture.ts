import { corruptMedia } from '../../../formats/byte-reader.ts';
import { readGrid } from '../../../formats/heif/heif-derivation.ts';
import type { HeifFile } from '../../../formats/heif/heif-file.ts';
import { readCodedSize } from '../../../formats/heif/heif-properties.ts';
import { readHevcUnits } from '../../../formats/heif/hevc-units.ts';
import { type CodedPicture, decodeHevc, type Plane } from './decode-hevc.ts';
import type { Libde265 } from './libde265.ts';

/** Edge of the smallest block that a decoder leaves out as a whole, in samples of colour (HEVC §7.4.3.2.1). */
const BLOCK = 8;

/**
 * Decodes an item, put together of its tiles where it is a grid; transforms are not applied.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where a part cannot be decoded, or has another size than it says
 */
export function composePicture(libde265: Libde265, heif: HeifFile, item: number): CodedPicture {
  const decode = (part: number): CodedPicture => {
    const picture = decodeHevc(libde265, readHevcUnits(heif, part));
    const size = readCodedSize(heif.meta.reader, heif.propertiesOf(part));
    const [light] = picture.planes;
    if (light?.widthPx !== size?.widthPx || light?.heightPx !== size?.heightPx) {
      const decoded = `${light?.widthPx}×${light?.heightPx}`;
      throw corruptMedia(`HEIF: image ${part} is ${decoded} px, not ${JSON.stringify(size)}`);
    }
    return picture;
  };
  const isGrid = heif.types.get(item) === 'grid';
  const picture = isGrid ? composeGrid(heif, item, decode) : decode(item);
  // Not of each tile: phones leave what lies beyond the edge of a grid empty.
  if (hasHoles(picture)) throw corruptMedia(`HEIF: a part of image ${item} is missing`);
  return picture;
}

function composeGrid(
  heif: HeifFile,
  item: number,
  decode: (tile: number) => CodedPicture,
): CodedPicture {
  const { columns, widthPx, heightPx } = readGrid(heif, item);
  let canvas: CodedPicture | undefined;
  for (const [index, tile] of heif.sourcesOf(item).entries()) {
    const picture = decode(tile);
    canvas ??= createCanvas(picture, widthPx, heightPx);
    if (!isAlike(canvas, picture)) throw corruptMedia('HEIF: tiles of different kinds');
    const [column, row] = [index % columns, Math.floor(index / columns)];
    for (const [channel, plane] of picture.planes.entries()) {
      const target = canvas.planes[channel];
      if (target) paste(plane, target, column * plane.widthPx, row * plane.heightPx);
    }
  }
  if (canvas === undefined) throw corruptMedia('HEIF: a grid without tiles');
  return canvas;
}

/** A picture of another size, of the kind that a tile is. */
function createCanvas(tile: CodedPicture, widthPx: number, heightPx: number): CodedPicture {
  const [light] = tile.planes;
  const planes = tile.planes.map((plane): Plane => {
    const width = Math.ceil((widthPx * plane.widthPx) / (light?.widthPx ?? 1));
    const height = Math.ceil((heightPx * plane.heightPx) / (light?.heightPx ?? 1));
    const samples =
      tile.depth > 8 ? new Uint16Array(width * height) : new Uint8Array(width * height);
    return { widthPx: width, heightPx: height, samples };
  });
  return { ...tile, planes };
}

function isAlike(one: CodedPicture, other: CodedPicture): boolean {
  return one.depth === other.depth && one.planes.length === other.planes.length;
}

/** Copies what of a plane lies within another one. */
function paste(from: Plane, to: Plane, left: number, top: number): void {
  const width = Math.min(from.widthPx, to.widthPx - left);
  const height = Math.min(from.heightPx, to.heightPx - top);
  for (let row = 0; row < height; row += 1) {
    const start = row * from.widthPx;
    to.samples.set(from.samples.subarray(start, start + width), (top + row) * to.widthPx + left);
  }
}

/**
 * Whether blocks have stayed as the decoder made room for them: all zero, which is a green that no light has.
 * Without colour, or where the planes are red, green and blue themselves, that is black.
 */
function hasHoles({ planes: [light, blue, red], matrix }: CodedPicture): boolean {
  if (light === undefined || blue === undefined || red === undefined || matrix === 0) return false;
  const isZero = (
    { widthPx, samples }: Plane,
    left: number,
    top: number,
    edge: number,
  ): boolean => {
    for (let row = top; row < top + edge; row += 1) {
      for (let column = left; column < left + edge; column += 1) {
        if (samples[row * widthPx + column] !== 0) return false;
      }
    }
    return true;
  };
  const across = Math.round(light.widthPx / blue.widthPx);
  const down = Math.round(light.heightPx / blue.heightPx);
  for (let top = 0; top + BLOCK <= blue.heightPx; top += BLOCK) {
    for (let left = 0; left + BLOCK <= blue.widthPx; left += BLOCK) {
      const isHole =
        isZero(blue, left, top, BLOCK) &&
        isZero(red, left, top, BLOCK) &&
        isZero(light, left * across, top * down, BLOCK);
      if (isHole) return true;
    }
  }
  return false;
}
