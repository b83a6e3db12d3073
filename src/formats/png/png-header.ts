import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import { readExifOrientation } from '../exif-block.ts';
import type { CodePoints, ImageHeader, Orientation, Prefix } from '../image-header.ts';
import { ApngFrames } from './apng-frames.ts';
import { findDataError, type Ihdr, readIhdr } from './image-data.ts';
import { crcError, hasValidCrc, iteratePngChunks, type PngChunk } from './png-chunks.ts';

/** Chunks that may be sent, with their maximum bytes (PNG 3rd edition §11); longer ones contain something else. */
const CLEAN_CHUNK_BYTES = new Map([
  ['IHDR', 13],
  ['PLTE', 768],
  ['IDAT', 0x7fff_ffff],
  ['IEND', 0],
  ['tRNS', 256],
  ['gAMA', 4],
  ['cHRM', 32],
  ['sRGB', 1],
  ['sBIT', 4],
  ['bKGD', 6],
  ['hIST', 512],
  ['pHYs', 9],
]);

const PALETTE_COLOUR_TYPE = 3;
/** Maximum tRNS without a palette: a sample for each of three channels. */
const MAX_TRANSPARENT_BYTES = 6;
/** Maximum chunks: those of 50 000 frames, the maximum setting, with their data. */
const MAX_CHUNKS = 105_000;

/**
 * Reads the header of a PNG (PNG 3rd edition, W3C 2025) or an APNG, which has `acTL` before the image data. Checks the
 * CRC of critical chunks up to IEND, like libpng. `checkDataCrcs` checks that of image data, but only where libpng does
 * not: it would be an eighth of the main process's work on a large file.
 */
export function readPngHeader(bytes: Uint8Array, prefix?: Prefix): ImageHeader {
  const reader = new ByteReader(bytes, 'PNG');
  let header: Ihdr | undefined;
  let orientation: Orientation | undefined;
  let animation: ApngFrames | undefined;
  let isClean = true;
  let hasPalette = false;
  let gamma: number | undefined;
  let codePoints: CodePoints | undefined;
  let hasColourSpace = false;
  let hasProfile = false;
  let imageData: 'awaited' | 'open' | 'closed' = 'awaited';
  let imageDataBytes = 0;
  let chunks = 0;
  const toHeader = (header: Ihdr, isClean: boolean): ImageHeader => ({
    widthPx: header.widthPx,
    heightPx: header.heightPx,
    orientation: orientation ?? 1,
    ...framesOf(animation),
    dataError: findDataError(header, imageDataBytes),
    // These three chunks have precedence over gAMA (PNG 3rd edition §4.3).
    gamma: hasColourSpace || codePoints !== undefined ? undefined : gamma,
    codePoints,
    isPlain: header.bitDepth <= 8 && !hasProfile && codePoints === undefined,
    isClean,
  });
  for (const chunk of iteratePngChunks(bytes)) {
    const isCut = prefix?.isLongest === true && chunk.end + 4 > bytes.length;
    if (prefix !== undefined && (isCut || chunk.type === 'IDAT')) break;
    chunks += 1;
    if (chunks > MAX_CHUNKS) throw corruptMedia(`PNG: more than ${MAX_CHUNKS} chunks`);
    checkChunk(reader, chunk);
    if (header === undefined) {
      header = readIhdr(reader, chunk);
      animation = new ApngFrames(reader, header);
      continue;
    }
    animation?.visit(chunk);
    isClean &&= chunk.end - chunk.start <= (CLEAN_CHUNK_BYTES.get(chunk.type) ?? -1);
    if (chunk.type !== 'IDAT' && imageData === 'open') imageData = 'closed';
    switch (chunk.type) {
      case 'IHDR':
        throw corruptMedia(`PNG: second IHDR at ${chunk.start}`);
      case 'PLTE':
        hasPalette = true;
        break;
      case 'IDAT':
        if (imageData === 'closed') {
          throw corruptMedia(`PNG: IDAT at ${chunk.start} does not follow the others`);
        }
        if (header.colourType === PALETTE_COLOUR_TYPE && !hasPalette) {
          throw corruptMedia(`PNG: IDAT at ${chunk.start} before PLTE`);
        }
        imageData = 'open';
        imageDataBytes += chunk.end - chunk.start;
        break;
      case 'tRNS':
        isClean &&= isWithinDepth(reader, chunk, header);
        break;
      case 'gAMA':
        if (imageData === 'awaited') gamma ??= readGamma(reader, chunk);
        break;
      case 'cICP':
        if (imageData === 'awaited') codePoints ??= readCodePoints(reader, chunk);
        break;
      case 'iCCP':
      case 'sRGB':
        hasProfile ||= chunk.type === 'iCCP';
        hasColourSpace ||= imageData === 'awaited';
        break;
      case 'eXIf':
        // libvips reads eXIf only before the image data; libpng only the first TIFF block.
        if (imageData === 'awaited' && isTiff(bytes, chunk.start)) {
          orientation ??= readExifOrientation(reader.slice(chunk.start, chunk.end));
        }
        break;
      case 'IEND':
        if (imageData === 'awaited') throw corruptMedia('PNG: no IDAT before IEND');
        animation?.finish();
        return toHeader(
          header,
          isClean && chunk.end + 4 === bytes.length && hasValidCrc(reader, chunk),
        );
    }
  }
  if (prefix !== undefined && header !== undefined) return toHeader(header, false);
  throw corruptMedia(`PNG: no IEND in ${bytes.length} bytes`);
}

/** Throws for a chunk past the end, with an invalid type, or, if critical except for image data, a wrong CRC. */
function checkChunk(reader: ByteReader, chunk: PngChunk): void {
  const { type, start, end } = chunk;
  reader.require(start, end + 4 - start);
  if (!/^[A-Za-z]{4}$/.test(type)) throw corruptMedia(`PNG: no chunk type at ${start - 4}`);
  // Decoders do not read the CRC of IEND.
  const isCritical = type.charCodeAt(0) < 0x60 && type !== 'IEND' && type !== 'IDAT';
  if (isCritical && !hasValidCrc(reader, chunk)) throw crcError(chunk);
}

/** Returns the animation fields of the chunks visited so far. */
function framesOf(
  apng: ApngFrames | undefined,
): Pick<ImageHeader, 'format' | 'frames' | 'animation' | 'animationError'> {
  if (!apng?.isAnimated) return { format: 'png', frames: 1, animation: undefined };
  const { frames, plays, error, showsMoreThanDefaultImage } = apng;
  const isShown = error === undefined && showsMoreThanDefaultImage;
  return {
    format: 'apng',
    frames: Math.max(frames.length, 1),
    animation: isShown ? { delaysMs: frames.map(({ delayMs }) => delayMs), plays } : undefined,
    animationError: error === undefined ? undefined : `APNG: ${error}`,
  };
}

/** Reads the exponent, stored times 100 000 (PNG 3rd edition §11.3.2.2), unless libpng ignores the chunk. */
function readGamma(reader: ByteReader, chunk: PngChunk): number | undefined {
  if (chunk.end - chunk.start !== 4 || !hasValidCrc(reader, chunk)) return undefined;
  const value = reader.u32be(chunk.start);
  return value > 0 ? value / 100_000 : undefined;
}

/** Reads the colour space (PNG 3rd edition §11.3.2.6), unless browsers ignore it because of its matrix or range. */
function readCodePoints(reader: ByteReader, chunk: PngChunk): CodePoints | undefined {
  const { start, end } = chunk;
  if (end - start !== 4 || !hasValidCrc(reader, chunk)) return undefined;
  if (reader.u8(start + 2) !== 0 || reader.u8(start + 3) !== 1) return undefined;
  return { primaries: reader.u8(start), transfer: reader.u8(start + 1) };
}

/**
 * Whether a pixel can have the transparent colour. Decoders should mask excess bits (PNG 3rd edition §11.3.1.1), but
 * browsers compare them, so that such a file would differ from its renderings.
 */
function isWithinDepth(
  reader: ByteReader,
  { start, end }: PngChunk,
  { colourType, bitDepth }: Ihdr,
): boolean {
  if (colourType === PALETTE_COLOUR_TYPE) return true;
  // Checked first, since a file may have 100 000 of these chunks.
  if (end - start > MAX_TRANSPARENT_BYTES) return false;
  for (let at = start; at + 2 <= end; at += 2) {
    if (reader.u16be(at) >= 2 ** bitDepth) return false;
  }
  return true;
}

function isTiff(bytes: Uint8Array, at: number): boolean {
  return hasAscii(bytes, at, 'II') || hasAscii(bytes, at, 'MM');
}
