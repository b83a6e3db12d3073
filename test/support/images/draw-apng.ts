import { deflateSync } from 'node:zlib';
import { join, pngChunk, u32be } from '../../formats/containers.ts';
import { u16be } from './heif-file.ts';

/** How the samples of a drawing are stored: PNG's colour types by name, and bits a sample. */
export interface SampleKind {
  readonly colour: keyof typeof colourTypes;
  readonly bits: 1 | 2 | 4 | 8 | 16;
  /** Red, green and blue of each entry. */
  readonly palette?: readonly (readonly [number, number, number])[];
  /** The payload of tRNS as numbers: an alpha for each entry, or the one transparent colour. */
  readonly transparent?: readonly number[];
}

/** Samples of the pixel at a place of a frame, as its kind stores them. */
export type Draw = (x: number, y: number) => readonly number[];

export interface DrawnApngFrame {
  readonly left?: number;
  readonly top?: number;
  /** The canvas's, where nothing is said. */
  readonly widthPx?: number;
  readonly heightPx?: number;
  /** Numerator and denominator of the delay in seconds. */
  readonly delay?: readonly [number, number];
  readonly dispose?: 'none' | 'background' | 'previous';
  readonly blend?: 'source' | 'over';
  readonly draw: Draw;
}

export interface DrawnApng {
  readonly widthPx: number;
  readonly heightPx: number;
  /** True colour with alpha and 8 bits, where nothing is said. */
  readonly kind?: SampleKind;
  readonly isInterlaced?: boolean;
  /** 0 is for ever. */
  readonly plays?: number;
  /** The default image, where it is none of the frames. */
  readonly still?: Draw;
  readonly frames: readonly DrawnApngFrame[];
  /** Into how many chunks the image data of each picture is cut. */
  readonly pieces?: number;
  /** Chunks between acTL and the image data. */
  readonly before?: readonly ApngChunk[];
}

/** A chunk of the file, without length and CRC. */
export interface ApngChunk {
  readonly type: string;
  readonly data: Buffer;
}

const colourTypes = {
  grey: { code: 0, channels: 1 },
  rgb: { code: 2, channels: 3 },
  palette: { code: 3, channels: 1 },
  'grey alpha': { code: 4, channels: 2 },
  rgba: { code: 6, channels: 4 },
} as const;

const trueColour: SampleKind = { colour: 'rgba', bits: 8 };
const disposals = { none: 0, background: 1, previous: 2 };
const blends = { source: 0, over: 1 };

/** First column and row, and steps, of the passes of Adam7 (PNG 3rd edition §8.2). */
const adam7 = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;

/** Writes an APNG that says and shows exactly this (PNG 3rd edition), with none of the code under test. */
export function drawApng(drawn: DrawnApng): Buffer {
  return formatChunks(drawApngChunks(drawn));
}

/** The chunks of a drawing, for those who want to change some. */
export function drawApngChunks(drawn: DrawnApng): ApngChunk[] {
  const { kind = trueColour, plays = 0, frames, still, isInterlaced = false, before = [] } = drawn;
  let sequence = 0;
  const number = (): Buffer => u32be(sequence++);
  const chunks: ApngChunk[] = [];
  const add = (type: string, ...parts: readonly (number | Uint8Array)[]): unknown =>
    chunks.push({ type, data: join(...parts) });
  const size = [drawn.widthPx, drawn.heightPx].map(u32be);
  const { code } = colourTypes[kind.colour];
  add('IHDR', ...size, kind.bits, code, 0, 0, isInterlaced ? 1 : 0);
  add('acTL', u32be(frames.length), u32be(plays));
  chunks.push(...before);
  if (kind.palette !== undefined) add('PLTE', ...kind.palette.flat());
  if (kind.transparent !== undefined) add('tRNS', ...kind.transparent);
  const addPicture = (picture: PictureSize & { readonly draw: Draw }, isStill: boolean): void => {
    const data = packSamples(picture, kind, isInterlaced);
    const { pieces = 1 } = drawn;
    const pieceBytes = Math.ceil(data.length / pieces);
    for (let index = 0; index < pieces; index += 1) {
      const piece = data.subarray(index * pieceBytes, (index + 1) * pieceBytes);
      if (isStill) add('IDAT', piece);
      else add('fdAT', number(), piece);
    }
  };
  if (still !== undefined) addPicture({ ...drawn, draw: still }, true);
  for (const [index, frame] of frames.entries()) {
    const { widthPx = drawn.widthPx, heightPx = drawn.heightPx, left = 0, top = 0 } = frame;
    const { draw, delay = [1, 10], dispose = 'none', blend = 'source' } = frame;
    const box = [widthPx, heightPx, left, top].map(u32be);
    add('fcTL', number(), ...box, ...delay.map(u16be), disposals[dispose], blends[blend]);
    addPicture({ widthPx, heightPx, draw }, still === undefined && index === 0);
  }
  add('IEND');
  return chunks;
}

/** Writes chunks, each with its length and a right CRC. */
export function formatChunks(chunks: readonly ApngChunk[]): Buffer {
  // Not as arguments, of which there cannot be a hundred thousand.
  const pieces = chunks.map(({ type, data }) => pngChunk(type, data));
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...pieces]);
}

interface PictureSize {
  readonly widthPx: number;
  readonly heightPx: number;
}

/** Rows of samples without a filter, compressed. */
function packSamples(
  { widthPx, heightPx, draw }: PictureSize & { readonly draw: Draw },
  { colour, bits }: SampleKind,
  isInterlaced: boolean,
): Buffer {
  const rows: Buffer[] = [];
  for (const [firstX, firstY, stepX, stepY] of isInterlaced ? adam7 : [[0, 0, 1, 1] as const]) {
    const columns = Math.ceil((widthPx - firstX) / stepX);
    if (columns <= 0) continue;
    const rowBytes = Math.ceil((columns * colourTypes[colour].channels * bits) / 8);
    for (let y = firstY; y < heightPx; y += stepY) {
      const row = Buffer.alloc(1 + rowBytes);
      let at = 8;
      for (let x = firstX; x < widthPx; x += stepX) {
        for (const sample of draw(x, y)) {
          if (bits === 16) row.writeUInt16BE(sample, at / 8);
          else row[at >> 3] = (row[at >> 3] ?? 0) | (sample << (8 - bits - (at % 8)));
          at += bits;
        }
      }
      rows.push(row);
    }
  }
  return deflateSync(Buffer.concat(rows));
}
