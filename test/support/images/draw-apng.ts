import { deflateSync } from 'node:zlib';
import { join, pngChunk, type Size, u16be, u32be } from '../../formats/containers.ts';

/** Returns red, green, blue and alpha of a pixel. */
type Draw = (x: number, y: number) => readonly number[];

/** A frame, by default of the canvas's size. */
interface DrawnApngFrame extends Partial<Size> {
  readonly left?: number;
  readonly top?: number;
  /** Numerator and denominator of the delay in seconds. */
  readonly delay?: readonly [number, number];
  readonly blend?: 'source' | 'over';
  readonly draw: Draw;
}

export interface DrawnApng extends Size {
  /** 0 for infinite. */
  readonly plays?: number;
  /** Default image, if it is not the first frame. */
  readonly still?: Draw;
  readonly frames: readonly DrawnApngFrame[];
  /** Number of chunks for the data of each image. */
  readonly pieces?: number;
  /** Chunks between acTL and the image data. */
  readonly before?: readonly ApngChunk[];
}

/** A chunk of the file, without length and CRC. */
export type ApngChunk = Readonly<{ type: string; data: Buffer }>;

/** Draws an APNG (PNG 3rd edition) without the code under test. */
export function drawApng(drawn: DrawnApng): Buffer {
  return formatChunks(drawApngChunks(drawn));
}

/** Returns the chunks of a drawing, which a test can change. */
export function drawApngChunks(drawn: DrawnApng): ApngChunk[] {
  const { plays = 0, frames, still, before = [] } = drawn;
  let sequence = 0;
  const number = (): Buffer => u32be(sequence++);
  const chunks: ApngChunk[] = [];
  const add = (type: string, ...parts: readonly (number | Uint8Array)[]): unknown =>
    chunks.push({ type, data: join(...parts) });
  const size = [drawn.widthPx, drawn.heightPx].map(u32be);
  add('IHDR', ...size, 8, 6, 0, 0, 0); // true colour with alpha
  add('acTL', u32be(frames.length), u32be(plays));
  chunks.push(...before);
  const addPicture = (size: Size, draw: Draw, isStill: boolean): void => {
    const data = packSamples(size, draw);
    const { pieces = 1 } = drawn;
    const pieceBytes = Math.ceil(data.length / pieces);
    for (let index = 0; index < pieces; index += 1) {
      const piece = data.subarray(index * pieceBytes, (index + 1) * pieceBytes);
      if (isStill) add('IDAT', piece);
      else add('fdAT', number(), piece);
    }
  };
  if (still !== undefined) addPicture(drawn, still, true);
  for (const [index, frame] of frames.entries()) {
    const { widthPx = drawn.widthPx, heightPx = drawn.heightPx, left = 0, top = 0 } = frame;
    const { draw, delay = [1, 10], blend = 'source' } = frame;
    const box = [widthPx, heightPx, left, top].map(u32be);
    add('fcTL', number(), ...box, ...delay.map(u16be), 0, blend === 'over' ? 1 : 0);
    addPicture({ widthPx, heightPx }, draw, still === undefined && index === 0);
  }
  add('IEND');
  return chunks;
}

/** Formats chunks with their length and a correct CRC. */
export function formatChunks(chunks: readonly ApngChunk[]): Buffer {
  // Not by `join`: a function cannot have 100 000 arguments.
  const pieces = chunks.map(({ type, data }) => pngChunk(type, data));
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...pieces]);
}

/** Compresses rows of samples without a filter. */
function packSamples({ widthPx, heightPx }: Size, draw: Draw): Buffer {
  const rows = Array.from({ length: heightPx }, (_, y) =>
    Buffer.from([0, ...Array.from({ length: widthPx }, (_, x) => draw(x, y)).flat()]),
  );
  return deflateSync(Buffer.concat(rows));
}
