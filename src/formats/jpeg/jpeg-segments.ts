import { type Extent, hasAscii } from '../byte-reader.ts';
import { withPlainExif } from '../exif-block.ts';
import type { Orientation } from '../image-header.ts';

/** Second bytes of the markers that we use (ITU-T T.81 table B.1). */
export const jpegMarker = {
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
  dnl: 0xdc,
  dri: 0xdd,
  app0: 0xe0,
  app1: 0xe1,
  app2: 0xe2,
  app14: 0xee,
  app15: 0xef,
  com: 0xfe,
} as const;

/** A marker and its segment from the length on, which may exceed the file; empty for a standalone marker. */
export interface JpegSegment extends Extent {
  readonly code: number;
  readonly at: number;
}

/** Whether the bytes begin with SOI, libvips' magic. */
export function isJpeg(bytes: Uint8Array): boolean {
  return bytes[0] === 0xff && bytes[1] === jpegMarker.soi;
}

/**
 * Yields the markers after SOI (ITU-T T.81 annex B) like libjpeg's `jdmarker.c`: skips junk, fill bytes, stuffed zeros,
 * and restart markers in scans. Never throws; linear in the bytes.
 */
export function* iterateJpegSegments(jpeg: Uint8Array): Generator<JpegSegment, void> {
  let isScan = false;
  for (let position = 2; ; ) {
    const at = findMarker(jpeg, position, isScan);
    const code = jpeg[at + 1];
    if (code === undefined) return;
    const start = at + 2;
    const length = (jpeg[start] ?? 0) * 256 + (jpeg[start + 1] ?? 0);
    // For a length below 2, libjpeg skips only the length itself.
    const end = hasSegment(code) ? start + Math.max(length, 2) : start;
    yield { code, at, start, end };
    isScan = code === jpegMarker.sos;
    position = end;
  }
}

export function hasSegment(code: number): boolean {
  return (
    (code >= jpegMarker.sof0 && code <= jpegMarker.sof15) ||
    (code >= jpegMarker.sos && code <= jpegMarker.dri) ||
    (code >= jpegMarker.app0 && code <= jpegMarker.app15) ||
    code === jpegMarker.com
  );
}

/**
 * Returns the offset of the next marker's 0xff, or the file's length. Calls no function between adjacent pairs, since
 * 50 MB may consist of stuffed zeros or restart markers.
 */
export function findMarker(jpeg: Uint8Array, start: number, isScan: boolean): number {
  // The lowest three bits are the number of a restart marker.
  const restart = isScan ? jpegMarker.rst0 : -1;
  for (let at = start; at < jpeg.length - 1; ) {
    if (jpeg[at] !== 0xff) {
      at = findByte(jpeg, at + 1);
      continue;
    }
    while (jpeg[at + 1] === 0xff) at += 1;
    const code = jpeg[at + 1] ?? 0;
    if (code !== 0 && (code & 0xf8) !== restart) return at;
    at += 2;
  }
  return jpeg.length;
}

/** Bytes compared one by one before calling `indexOf`, which costs as much as twenty. */
const NEAR_BYTES = 64;

function findByte(jpeg: Uint8Array, start: number): number {
  const near = Math.min(start + NEAR_BYTES, jpeg.length);
  for (let at = start; at < near; at += 1) {
    if (jpeg[at] === 0xff) return at;
  }
  const far = jpeg.indexOf(0xff, near);
  return far === -1 ? jpeg.length : far;
}

/** Drops junk between segments (T.81 B.1.1.2) before the first scan, so that libjpeg warns only of real damage. */
export function dropJunk(jpeg: Uint8Array): Uint8Array {
  const kept = [jpeg.subarray(0, 2)];
  for (const { code, at, end } of iterateJpegSegments(jpeg)) {
    if (code === jpegMarker.sos) return Buffer.concat([...kept, jpeg.subarray(at)]);
    const isStandalone =
      code < jpegMarker.sof0 || (code >= jpegMarker.rst0 && code <= jpegMarker.eoi);
    // Unknown markers stay, so that libjpeg rejects them.
    if (!isStandalone) kept.push(jpeg.subarray(at, end));
  }
  return jpeg;
}

/** Returns the file with plain EXIF in each APP1 before the first scan. */
export function withPlainJpegExif(jpeg: Uint8Array, orientation: Orientation): Uint8Array {
  const blocks: Extent[] = [];
  for (const { code, start, end } of iterateJpegSegments(jpeg)) {
    if (code === jpegMarker.sos) break;
    if (code === jpegMarker.app1 && hasAscii(jpeg, start + 2, 'Exif')) {
      blocks.push({ start: start + 2, end: Math.min(end, jpeg.length) });
    }
  }
  return withPlainExif(jpeg, blocks, orientation);
}
