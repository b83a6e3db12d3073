import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import { readExifOrientation } from '../exif-block.ts';
import type { ImageHeader, Orientation, Prefix, Size } from '../image-header.ts';
import { hasSegment, iterateJpegSegments, type JpegSegment, jpegMarker } from './jpeg-segments.ts';

interface StartOfFrame extends Size {
  readonly components: number;
  readonly isArithmetic: boolean;
}

/** Maximum markers; 50 MB of metadata in segments of 64 KB have 800. */
const MAX_MARKERS = 20_000;

/** Maximum fill bytes that are checked; encoders write a few. */
const MAX_FILL_BYTES = 64 * 1024;

/**
 * Reads the header of a JPEG (ITU-T T.81 annex B); `undefined` for processes that libjpeg cannot decode (lossless,
 * hierarchical, 12 bit). Unlike libjpeg, requires EOI.
 */
export function readJpegHeader(bytes: Uint8Array, prefix?: Prefix): ImageHeader | undefined {
  const reader = new ByteReader(bytes, 'JPEG');
  let frame: StartOfFrame | undefined;
  let orientation: Orientation | undefined;
  let scans = 0;
  let isClean = true;
  let isPlain = true;
  let fillBytes = 0;
  let previous = { code: jpegMarker.soi as number, end: 2 };
  let markers = 0;
  const toHeader = ({ widthPx, heightPx }: Size, isClean: boolean): ImageHeader => ({
    format: 'jpeg',
    widthPx,
    heightPx,
    orientation: orientation ?? 1,
    frames: 1,
    scans,
    animation: undefined,
    isPlain,
    hasLoss: true,
    isClean: isClean && (orientation ?? 1) === 1,
  });
  for (const segment of iterateJpegSegments(bytes)) {
    markers += 1;
    if (markers > MAX_MARKERS) throw corruptMedia(`JPEG: more than ${MAX_MARKERS} markers`);
    const { code, at, start, end } = segment;
    if (previous.code !== jpegMarker.sos) {
      fillBytes += at - previous.end;
      isClean &&= fillBytes <= MAX_FILL_BYTES && isFill(bytes, previous.end, at);
    }
    previous = segment;
    if (code === jpegMarker.eoi) {
      if (frame === undefined || scans === 0) throw corruptMedia('JPEG: no image before EOI');
      const { components, isArithmetic } = frame;
      // Browsers do not decode arithmetic coding, which libjpeg does.
      const isCommon = !isArithmetic && (components === 1 || components === 3);
      return toHeader(frame, isClean && isCommon && end === bytes.length);
    }
    if (!hasSegment(code)) {
      // A reserved or misplaced marker is junk, and the decoder decides whether it is harmful.
      isClean = false;
      continue;
    }
    if (prefix !== undefined && (code === jpegMarker.sos || end > bytes.length)) break;
    requireSegment(reader, segment);
    if (isStartOfFrame(code)) {
      if (frame !== undefined) throw corruptMedia(`JPEG: second start of frame at ${at}`);
      frame = readFrame(reader, segment);
      if (frame === undefined) return undefined;
    } else if (code === jpegMarker.sos) {
      if (frame === undefined) throw corruptMedia(`JPEG: scan before start of frame at ${at}`);
      scans += 1;
    } else if (code >= jpegMarker.app0) {
      const data = bytes.subarray(start + 2, end);
      // libvips uses the first EXIF block, if it is before the first scan.
      if (scans === 0) orientation ??= readOrientation(code, data);
      isClean &&= isKnown(code, data);
      // May contain a profile.
      isPlain &&= code !== jpegMarker.app2;
    }
  }
  if (prefix !== undefined && frame !== undefined) return toHeader(frame, false);
  throw corruptMedia(`JPEG: no EOI marker in ${bytes.length} bytes`);
}

/** Whether a range consists of 0xff fill bytes, which may precede a marker (T.81 B.1.1.2). */
function isFill(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    if (bytes[at] !== 0xff) return false;
  }
  return true;
}

function isStartOfFrame(code: number): boolean {
  return code <= jpegMarker.sof15 && code !== jpegMarker.dht && code !== jpegMarker.dac;
}

/** Throws for a segment past the end, and a length below 2, which libjpeg accepts only of APPn, COM and DNL. */
function requireSegment(reader: ByteReader, { code, start, end }: JpegSegment): void {
  const length = reader.u16be(start);
  if (length < 2 && code < jpegMarker.app0 && code !== jpegMarker.dnl) {
    throw corruptMedia(`JPEG: segment 0x${code.toString(16)} at ${start} has length ${length}`);
  }
  reader.require(start, end - start);
}

/** `undefined` for a process or sample depth that libjpeg cannot decode. */
function readFrame(reader: ByteReader, { code, start }: JpegSegment): StartOfFrame | undefined {
  const isArithmetic = code === jpegMarker.sof9 || code === jpegMarker.sof10;
  if ((code > jpegMarker.sof2 && !isArithmetic) || reader.u8(start + 2) !== 8) return undefined;
  const heightPx = reader.u16be(start + 3);
  const widthPx = reader.u16be(start + 5);
  const components = reader.u8(start + 7);
  // libjpeg does not support a height of 0, to be set by a later DNL.
  if (heightPx === 0 || widthPx === 0 || components === 0) {
    throw corruptMedia(`JPEG: ${widthPx}x${heightPx} px of ${components} components`);
  }
  if (reader.u16be(start) !== 8 + 3 * components) {
    throw corruptMedia(`JPEG: start of frame at ${start} has a wrong length`);
  }
  return { widthPx, heightPx, components, isArithmetic };
}

function readOrientation(code: number, data: Uint8Array): Orientation | undefined {
  if (code !== jpegMarker.app1 || !hasAscii(data, 0, 'Exif') || data.length <= 4) return undefined;
  return hasAscii(data, 4, '\0\0') ? readExifOrientation(data) : 1;
}

/** Whether all bytes of a segment have a known meaning; a longer APP0 contains a thumbnail. */
function isKnown(code: number, data: Uint8Array): boolean {
  return (
    (code === jpegMarker.app0 && data.length === 14 && hasAscii(data, 0, 'JFIF\0')) ||
    (code === jpegMarker.app14 && data.length === 12 && hasAscii(data, 0, 'Adobe'))
  );
}
