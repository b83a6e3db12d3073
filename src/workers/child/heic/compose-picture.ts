import { corruptMedia } from '../../../formats/byte-reader.ts';
import { readGrid } from '../../../formats/heif/heif-derivation.ts';
import type { HeifFile } from '../../../formats/heif/heif-file.ts';
import { readCodedSize } from '../../../formats/heif/heif-properties.ts';
import type { CodedPicture, Plane } from '../picture-to-rgb.ts';
import { decodeHevc } from './decode-hevc.ts';
import type { Libde265 } from './libde265.ts';

/** Edge of the smallest block that a decoder skips as a unit, in chroma samples (HEVC §7.4.3.2.1). */
const BLOCK = 8;

/** Decodes an item and joins the tiles of a grid. @throws MediaError if a part is damaged, or has another size */
export function composePicture(libde265: Libde265, heif: HeifFile, item: number): CodedPicture {
  const decode = (part: number): CodedPicture => {
    const picture = decodeHevc(libde265, heif, part);
    const size = readCodedSize(heif.meta.reader, heif.propertiesOf(part));
    const [luma] = picture.planes;
    if (luma?.widthPx !== size?.widthPx || luma?.heightPx !== size?.heightPx) {
      const decoded = `${luma?.widthPx}×${luma?.heightPx}`;
      throw corruptMedia(`HEIF: image ${part} is ${decoded} px, not ${JSON.stringify(size)}`);
    }
    return picture;
  };
  const isGrid = heif.types.get(item) === 'grid';
  const picture = isGrid ? composeGrid(heif, item, decode) : decode(item);
  // Checked after joining: phones leave parts of tiles beyond the edge of a grid empty.
  if (hasHoles(picture)) throw corruptMedia(`HEIF: a part of image ${item} is missing`);
  return picture;
}

function composeGrid(
  heif: HeifFile,
  item: number,
  decode: (tile: number) => CodedPicture,
): CodedPicture {
  const { columns, widthPx, heightPx } = readGrid(heif, item);
  let first: CodedPicture | undefined;
  let canvas: CodedPicture | undefined;
  for (const [index, tile] of heif.sourcesOf(item).entries()) {
    const picture = decode(tile);
    first ??= picture;
    canvas ??= createCanvas(first, widthPx, heightPx);
    if (!hasSameFormat(first, picture)) throw corruptMedia('HEIF: tiles of different kinds');
    const [column, row] = [index % columns, Math.floor(index / columns)];
    for (const [channel, plane] of picture.planes.entries()) {
      const target = canvas.planes[channel];
      if (target) paste(plane, target, column * plane.widthPx, row * plane.heightPx);
    }
  }
  if (canvas === undefined) throw corruptMedia('HEIF: a grid without tiles');
  return canvas;
}

function createCanvas(tile: CodedPicture, widthPx: number, heightPx: number): CodedPicture {
  const [luma] = tile.planes;
  const planes = tile.planes.map((plane): Plane => {
    const width = Math.ceil((widthPx * plane.widthPx) / (luma?.widthPx ?? 1));
    const height = Math.ceil((heightPx * plane.heightPx) / (luma?.heightPx ?? 1));
    const samples =
      tile.depth > 8 ? new Uint16Array(width * height) : new Uint8Array(width * height);
    return { widthPx: width, heightPx: height, samples };
  });
  return { ...tile, planes };
}

function hasSameFormat(one: CodedPicture, other: CodedPicture): boolean {
  const sizes = ({ planes }: CodedPicture): string =>
    planes.map(({ widthPx, heightPx }) => `${widthPx}x${heightPx}`).join();
  return one.depth === other.depth && sizes(one) === sizes(other);
}

/** Copies a plane into another one, clipped at its edges. */
function paste(from: Plane, to: Plane, left: number, top: number): void {
  const width = Math.min(from.widthPx, to.widthPx - left);
  const height = Math.min(from.heightPx, to.heightPx - top);
  for (let row = 0; row < height; row += 1) {
    const start = row * from.widthPx;
    to.samples.set(from.samples.subarray(start, start + width), (top + row) * to.widthPx + left);
  }
}

/** Whether any block is still zero, as allocated (green). Not detectable without chroma or in RGB. */
function hasHoles({ planes: [luma, cb, cr], matrix }: CodedPicture): boolean {
  if (luma === undefined || cb === undefined || cr === undefined || matrix === 0) return false;
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
  const across = Math.round(luma.widthPx / cb.widthPx);
  const down = Math.round(luma.heightPx / cb.heightPx);
  for (let top = 0; top + BLOCK <= cb.heightPx; top += BLOCK) {
    for (let left = 0; left + BLOCK <= cb.widthPx; left += BLOCK) {
      const isHole =
        isZero(cb, left, top, BLOCK) &&
        isZero(cr, left, top, BLOCK) &&
        isZero(luma, left * across, top * down, BLOCK);
      if (isHole) return true;
    }
  }
  return false;
}
