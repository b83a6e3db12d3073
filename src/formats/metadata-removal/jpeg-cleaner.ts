import { hasAscii } from '../byte-reader.ts';
import { findMarker, hasSegment, jpegMarker } from '../jpeg/jpeg-segments.ts';
import { readPictureOffsets } from './multi-picture-index.ts';
import { EXIF_PREFIX, reduceExif } from './reduced-exif.ts';
import { MAX_BUFFERED_BYTES, type Steps, type StreamEditor } from './stream-editor.ts';

/** Bytes of a segment's marker and length. */
const HEADER_BYTES = 4;

const MULTI_PICTURE = 'MPF\0';

/** Names of APP2 segments that are needed for decoding: ICC profile, picture index, gain map parameters. */
const KEPT_APP2 = ['ICC_PROFILE\0', MULTI_PICTURE, 'urn:iso:std:iso:ts:21496:-1\0'];

/** JFIF payload without a thumbnail (JFIF 1.02), offset of the thumbnail's size, and Adobe payload, in bytes. */
const JFIF_BYTES = 14;
const JFIF_THUMBNAIL_AT = 12;
const ADOBE_BYTES = 12;

/**
 * Overwrites the metadata of a JPEG (ITU-T T.81 annex B) and its MPF pictures (CIPA DC-007), and bytes between and
 * after.
 */
export function* cleanJpeg(editor: StreamEditor): Steps {
  const offsets = yield* cleanPicture(editor);
  for (const offset of offsets) {
    if (offset < editor.position) continue;
    if (!(yield* zeroUpTo(editor, offset))) return;
    const start = yield* editor.peek(3);
    const isPicture = start[0] === 0xff && start[1] === jpegMarker.soi && start[2] === 0xff;
    if (isPicture) yield* cleanPicture(editor);
  }
  yield* editor.zeroRest();
}

/** Zeros all bytes before an offset; returns whether the input continues there. */
function* zeroUpTo(editor: StreamEditor, offset: number): Steps<boolean> {
  while (editor.position < offset) {
    const chunk = yield* editor.peekChunk();
    if (chunk.length === 0) return false;
    yield* editor.zero(Math.min(chunk.length, offset - editor.position));
  }
  return !(yield* editor.isAtEnd());
}

/** Cleans a picture up to EOI; returns the offsets of the pictures in its index, ascending. */
function* cleanPicture(editor: StreamEditor): Steps<readonly number[]> {
  yield* editor.keep(2);
  let isScan = false;
  let hasImage = false;
  let hasExif = false;
  let offsets: readonly number[] | undefined;
  for (;;) {
    editor.countPart();
    yield* passToMarker(editor, isScan);
    const [, code = 0] = yield* editor.require(2);
    if (code === jpegMarker.eoi) {
      if (!hasImage) throw editor.damaged('it has no image');
      yield* editor.keep(2);
      return offsets ?? [];
    }
    if (!hasSegment(code)) {
      // Decoders continue a scan after such a marker.
      if (!isStandalone(code)) throw editor.damaged('unknown marker');
      yield* editor.keep(2);
      continue;
    }
    const length = lengthOf(yield* editor.require(HEADER_BYTES));
    isScan = code === jpegMarker.sos;
    hasImage ||= isScan;
    if (code < jpegMarker.app0) {
      yield* editor.keep(length);
      continue;
    }
    const head = yield* editor.require(Math.min(length, MAX_BUFFERED_BYTES));
    const payload = head.subarray(HEADER_BYTES);
    if (code === jpegMarker.app2 && hasAscii(payload, 0, MULTI_PICTURE)) {
      const base = editor.position + HEADER_BYTES + MULTI_PICTURE.length;
      offsets ??= readPictureOffsets(payload.subarray(MULTI_PICTURE.length), base);
    }
    const isExif = code === jpegMarker.app1 && hasAscii(payload, 0, 'Exif');
    // Decoders use the first EXIF block, if it is before the first scan.
    const isEffective = isExif && !hasExif && !hasImage && hasAscii(payload, 0, EXIF_PREFIX);
    hasExif ||= isExif;
    const kept = isEffective
      ? keptExif(payload.subarray(EXIF_PREFIX.length), length - HEADER_BYTES - EXIF_PREFIX.length)
      : keptPayload(code, payload);
    if (kept === 'all') {
      yield* editor.keep(length);
      continue;
    }
    // A comment of zeros would still be a comment, so its marker changes too.
    yield* editor.overwrite(
      Buffer.of(0xff, kept === undefined ? jpegMarker.app15 : code, ...head.subarray(2, 4)),
    );
    yield* editor.overwrite(kept ?? new Uint8Array(0));
    yield* editor.zero(length - HEADER_BYTES - (kept?.length ?? 0));
  }
}

function keptExif(tiff: Uint8Array, bytes: number): Uint8Array | undefined {
  const reduced = reduceExif(tiff, bytes);
  return reduced && Buffer.concat([Buffer.from(EXIF_PREFIX, 'latin1'), reduced]);
}

/** Returns the part of an APPn or COM to keep: all, the beginning of its payload, or none. */
function keptPayload(code: number, payload: Uint8Array): Uint8Array | 'all' | undefined {
  if (code === jpegMarker.app2) {
    return KEPT_APP2.some((name) => hasAscii(payload, 0, name)) ? 'all' : undefined;
  }
  if (code === jpegMarker.app0 && hasAscii(payload, 0, 'JFIF\0') && payload.length >= JFIF_BYTES) {
    return Buffer.concat([payload.subarray(0, JFIF_THUMBNAIL_AT), Buffer.of(0, 0)]);
  }
  const isAdobe = code === jpegMarker.app14 && hasAscii(payload, 0, 'Adobe');
  return isAdobe && payload.length >= ADOBE_BYTES ? payload.subarray(0, ADOBE_BYTES) : undefined;
}

function isStandalone(code: number): boolean {
  return code === 0x01 || (code >= jpegMarker.rst0 && code <= jpegMarker.soi);
}

/** Returns the length from the marker to the end of the segment; like libjpeg, ignores a length below 2. */
function lengthOf(header: Uint8Array): number {
  return 2 + Math.max(2, (header[2] ?? 0) * 256 + (header[3] ?? 0));
}

/** Keeps scan data, or zeros all but fill bytes between other segments (T.81 B.1.1.2), up to the next marker. */
function* passToMarker(editor: StreamEditor, isScan: boolean): Steps {
  for (;;) {
    const chunk = yield* editor.peekChunk();
    if (chunk.length === 0) throw editor.truncated();
    const marker = findMarker(chunk, 0, isScan);
    const isFound = marker < chunk.length;
    // A trailing 0xff may begin a marker.
    const end = isFound || chunk.at(-1) !== 0xff ? marker : chunk.length - 1;
    if (isScan) yield* editor.keep(end);
    else if (end > 0)
      yield* editor.overwrite(chunk.subarray(0, end).map((byte) => (byte === 0xff ? byte : 0)));
    if (isFound) return;
    if (end < chunk.length) yield* editor.require(2);
  }
}
