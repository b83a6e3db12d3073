import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import { readExifOrientation } from '../exif-orientation.ts';
import type { ImageFacts, Orientation } from '../image-facts.ts';

const marker = {
  sof0: 0xc0,
  sof2: 0xc2,
  dht: 0xc4,
  sof9: 0xc9,
  sof10: 0xca,
  dac: 0xcc,
  sof15: 0xcf,
  rst0: 0xd0,
  rst7: 0xd7,
  soi: 0xd8,
  eoi: 0xd9,
  sos: 0xda,
  dqt: 0xdb,
  dnl: 0xdc,
  dri: 0xdd,
  app0: 0xe0,
  app1: 0xe1,
  app14: 0xee,
  app15: 0xef,
  com: 0xfe,
} as const;

/** Start of frame: the coding process, size and components. */
interface Frame {
  readonly widthPx: number;
  readonly heightPx: number;
  readonly components: number;
  readonly isArithmetic: boolean;
}

/** What has been gathered on the way through the markers. */
interface Walk {
  frame: Frame | undefined;
  orientation: Orientation | undefined;
  hasScan: boolean;
  isClean: boolean;
}

/** Far beyond any real file (a 50 MB one with 64 KB of metadata a segment has 800); bounds the walk. */
const maxMarkers = 20_000;

/** True where the bytes begin with SOI, the whole magic libvips asks for. */
export function isJpeg(bytes: Uint8Array): boolean {
  return bytes[0] === 0xff && bytes[1] === marker.soi;
}

/**
 * Reads the facts of a JPEG (ITU-T T.81 annex B); `undefined` for the processes libjpeg has no
 * decoder for (lossless, hierarchical, 12 bit).
 *
 * The walk follows `jdmarker.c` of libjpeg: junk and fill bytes between segments are skipped.
 * Stricter than libjpeg in one thing: the file has to reach EOI, whatever has been decoded by then.
 */
export function readJpegHeader(bytes: Uint8Array): ImageFacts | undefined {
  const reader = new ByteReader(bytes, 'JPEG');
  const walk: Walk = { frame: undefined, orientation: undefined, hasScan: false, isClean: true };
  let position = 2;
  let isEntropyCoded = false;
  for (let markers = 1; ; markers += 1) {
    if (markers > maxMarkers) throw corruptMedia(`JPEG: more than ${maxMarkers} markers`);
    const at = findMarker(bytes, position, isEntropyCoded);
    walk.isClean &&= isEntropyCoded || isFill(bytes, position, at);
    const code = reader.u8(at + 1);
    position = at + 2;
    isEntropyCoded = false;
    if (code === marker.eoi) {
      return finish(walk, position === bytes.length);
    }
    if (!hasSegment(code)) {
      // Reserved or out of place, so junk: the decoder will tell whether it does any harm.
      walk.isClean = false;
      continue;
    }
    const end = findSegmentEnd(reader, code, position);
    if (isStartOfFrame(code)) {
      if (walk.frame !== undefined) {
        throw corruptMedia(`JPEG: second start of frame at ${at}`);
      }
      walk.frame = readFrame(reader, code, position);
      if (walk.frame === undefined) {
        return undefined;
      }
    } else if (code === marker.sos) {
      if (walk.frame === undefined) {
        throw corruptMedia(`JPEG: scan before start of frame at ${at}`);
      }
      walk.hasScan = true;
      isEntropyCoded = true;
    } else if (code >= marker.app0) {
      readApplicationData(walk, code, bytes.subarray(position + 2, end));
    }
    position = end;
  }
}

/** Offset of the next marker's 0xff; stuffed zeros, fill bytes and (within a scan) RSTn skipped. */
function findMarker(bytes: Uint8Array, start: number, isEntropyCoded: boolean): number {
  let at = bytes.indexOf(0xff, start);
  while (at !== -1) {
    while (bytes[at + 1] === 0xff) {
      at += 1;
    }
    const code = bytes[at + 1];
    if (code !== 0 && !(isEntropyCoded && isRestart(code))) {
      return at;
    }
    at = findNear(bytes, at + 2);
  }
  throw corruptMedia(`JPEG: no EOI marker in ${bytes.length} bytes`);
}

/**
 * Offset of the next 0xff. A call of `indexOf` costs as much as a look at ten bytes: 50 MB of stuffed
 * zeros would take 0.3 s.
 */
function findNear(bytes: Uint8Array, start: number): number {
  const near = Math.min(start + 16, bytes.length);
  for (let at = start; at < near; at += 1) {
    if (bytes[at] === 0xff) {
      return at;
    }
  }
  return bytes.indexOf(0xff, near);
}

function isRestart(code: number | undefined): boolean {
  return code !== undefined && code >= marker.rst0 && code <= marker.rst7;
}

/** T.81 B.1.1.2: any number of 0xff may stand before a marker. They can hide nothing. */
function isFill(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    if (bytes[at] !== 0xff) {
      return false;
    }
  }
  return true;
}

/** SOFn, JPG, DHT, DAC; SOS, DQT, DNL, DRI; APPn; COM. */
function hasSegment(code: number): boolean {
  return (
    (code >= marker.sof0 && code <= marker.sof15) ||
    (code >= marker.sos && code <= marker.dri) ||
    (code >= marker.app0 && code <= marker.app15) ||
    code === marker.com
  );
}

function isStartOfFrame(code: number): boolean {
  return code <= marker.sof15 && code !== marker.dht && code !== marker.dac;
}

/** libjpeg skips nothing of an APPn, COM or DNL whose length is below 2, and goes on behind it. */
function findSegmentEnd(reader: ByteReader, code: number, position: number): number {
  const length = reader.u16be(position);
  if (length < 2 && code < marker.app0 && code !== marker.dnl) {
    throw corruptMedia(`JPEG: segment 0x${code.toString(16)} at ${position} has length ${length}`);
  }
  const end = position + Math.max(length, 2);
  reader.require(position, end - position);
  return end;
}

/** `undefined` for a coding process or sample depth that libjpeg cannot decode. */
function readFrame(reader: ByteReader, code: number, position: number): Frame | undefined {
  const isArithmetic = code === marker.sof9 || code === marker.sof10;
  if ((code > marker.sof2 && !isArithmetic) || reader.u8(position + 2) !== 8) {
    return undefined;
  }
  const heightPx = reader.u16be(position + 3);
  const widthPx = reader.u16be(position + 5);
  const components = reader.u8(position + 7);
  // A height of 0, to be told by DNL later, is nothing libjpeg supports.
  if (heightPx === 0 || widthPx === 0 || components === 0) {
    throw corruptMedia(`JPEG: ${widthPx}x${heightPx} px of ${components} components`);
  }
  if (reader.u16be(position) !== 8 + 3 * components) {
    throw corruptMedia(`JPEG: start of frame at ${position} has a wrong length`);
  }
  return { widthPx, heightPx, components, isArithmetic };
}

function readApplicationData(walk: Walk, code: number, data: Uint8Array): void {
  if (code === marker.app1 && hasAscii(data, 0, 'Exif') && data.length > 4) {
    // libvips takes the first, and only of those before the first scan.
    if (walk.orientation === undefined && !walk.hasScan) {
      walk.orientation = hasAscii(data, 4, '\0\0') ? readExifOrientation(data) : 1;
    }
  }
  // Of these two alone every byte is known; a longer APP0 carries a thumbnail.
  const isKnown =
    (code === marker.app0 && data.length === 14 && hasAscii(data, 0, 'JFIF\0')) ||
    (code === marker.app14 && data.length === 12 && hasAscii(data, 0, 'Adobe'));
  walk.isClean = walk.isClean && isKnown;
}

function finish(walk: Walk, isAtEnd: boolean): ImageFacts {
  const { frame, hasScan } = walk;
  if (frame === undefined || !hasScan) {
    throw corruptMedia('JPEG: no image before EOI');
  }
  const orientation = walk.orientation ?? 1;
  return {
    format: 'jpeg',
    widthPx: frame.widthPx,
    heightPx: frame.heightPx,
    orientation,
    frames: 1,
    animation: undefined,
    // Arithmetic coding: libjpeg reads it, browsers do not.
    isClean:
      walk.isClean &&
      isAtEnd &&
      orientation === 1 &&
      !frame.isArithmetic &&
      (frame.components === 1 || frame.components === 3),
  };
}
