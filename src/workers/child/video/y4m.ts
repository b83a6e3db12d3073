import { corruptMedia } from '../../../formats/byte-reader.ts';
import type { Size } from '../../../formats/image-header.ts';
import { MAX_Y4M_HEAD_BYTES } from '../../../formats/video/av-metadata.ts';
import type { Plane } from '../picture-to-rgb.ts';

export interface DecodedFrame {
  readonly planes: readonly Plane[];
  readonly depth: number;
  /** Range as declared by the stream. */
  readonly isFullRange: boolean | undefined;
}

/** Chroma samples per luma sample, across and down, by prefix of the format's name; `mono` has none. */
const SUBSAMPLING: Readonly<Record<string, readonly [across: number, down: number]>> = {
  '420': [2, 2],
  '422': [2, 1],
  '444': [1, 1],
};

/** Reads a YUV4MPEG2 file of exactly one frame. @throws MediaError `UNPROCESSABLE_MEDIA` for any other file */
export function readY4m(file: Uint8Array, { widthPx, heightPx }: Size): DecodedFrame {
  const head = Buffer.from(file.subarray(0, MAX_Y4M_HEAD_BYTES)).toString('latin1');
  const lines = /^YUV4MPEG2 ([^\n]*)\nFRAME[^\n]*\n/.exec(head);
  if (lines === null) throw corruptMedia('the decoder returned no frame');
  const fields = new Map((lines[1] ?? '').split(' ').map((field) => [field[0], field.slice(1)]));
  if (fields.get('W') !== String(widthPx) || fields.get('H') !== String(heightPx)) {
    const decoded = `${fields.get('W')}×${fields.get('H')}`;
    throw corruptMedia(`decoded ${decoded} px; the container declares ${widthPx}×${heightPx}`);
  }
  const format = /^(420|422|444|mono)(?:jpeg|mpeg2|paldv|p)?(9|1[0246])?$/.exec(
    fields.get('C') ?? '420jpeg',
  );
  if (format === null) throw corruptMedia(`decoded to the format ${fields.get('C')}`);
  const depth = Number(format[2] ?? 8);
  const [across, down] = SUBSAMPLING[format[1] ?? ''] ?? [];
  const chroma = across && down && [Math.ceil(widthPx / across), Math.ceil(heightPx / down)];
  const sizes = [[widthPx, heightPx], ...(chroma ? [chroma, chroma] : [])];
  let at = lines[0].length;
  const planes = sizes.map(([width = 0, height = 0]): Plane => {
    const bytes = width * height * (depth > 8 ? 2 : 1);
    const samples = file.subarray(at, at + bytes);
    at += bytes;
    return { widthPx: width, heightPx: height, samples: depth > 8 ? toUint16(samples) : samples };
  });
  if (at !== file.length) throw corruptMedia(`a frame of ${file.length} bytes, not ${at}`);
  const range = /XCOLORRANGE=(FULL|LIMITED)/.exec(lines[1] ?? '');
  return { planes, depth, isFullRange: range ? range[1] === 'FULL' : undefined };
}

/** Returns little-endian samples as numbers; copies them, since they may start at an odd byte. */
function toUint16(bytes: Uint8Array): Uint16Array {
  return new Uint16Array(new Uint8Array(bytes).buffer);
}

/** Levels of luma, and the width of an empty frame's range. */
const LEVELS = 256;
const EMPTY_LEVELS = 16;
const EMPTY_FRACTION = 0.98;

/** Whether a frame is empty: nearly all luma samples are nearly equal (contract §12). */
export function isEmpty({ planes: [luma], depth }: DecodedFrame): boolean {
  if (luma === undefined) return true;
  const counts = new Uint32Array(LEVELS);
  const shift = depth - 8;
  for (const sample of luma.samples) {
    const level = sample >> shift;
    counts[level] = counts[level] + 1;
  }
  let within = 0;
  for (let level = 0; level < LEVELS; level += 1) {
    within += counts[level] - (counts[level - EMPTY_LEVELS] ?? 0);
    if (within >= luma.samples.length * EMPTY_FRACTION) return true;
  }
  return false;
}
