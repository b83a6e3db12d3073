import { crc32 } from 'node:zlib';
import { tagAt } from '../byte-reader.ts';
import { reduceExif } from './reduced-exif.ts';
import { MAX_BUFFERED_BYTES, type Steps, type StreamEditor } from './stream-editor.ts';

const SIGNATURE_BYTES = 8;

/** Bytes of length and type; the CRC follows the payload (PNG 3rd edition §5.3). */
const HEADER_BYTES = 8;
const CRC_BYTES = 4;
const MAX_PAYLOAD_BYTES = 2 ** 31 - 1;

/** Ancillary chunks for decoding: colours, transparency, pixel density, animation (two in an older spelling). */
const KEPT_TYPES: ReadonlySet<string> = new Set([
  ...['cHRM', 'gAMA', 'iCCP', 'sBIT', 'sRGB', 'cICP', 'mDCV', 'mDCv', 'cLLI', 'cLLi'],
  ...['bKGD', 'hIST', 'tRNS', 'pHYs', 'acTL', 'fcTL', 'fdAT'],
]);

/** Type of an overwritten chunk: ancillary, private, safe to copy (PNG 3rd edition §5.4). */
const ERASED_TYPE = 'zeRo';

const ZEROS = new Uint8Array(MAX_BUFFERED_BYTES);

/** Overwrites the metadata of a PNG or APNG, and everything after its IEND. */
export function* cleanPng(editor: StreamEditor): Steps {
  yield* editor.keep(SIGNATURE_BYTES);
  let hasImage = false;
  let hasExif = false;
  for (;;) {
    editor.countPart();
    const header = yield* editor.require(HEADER_BYTES);
    const length = Buffer.from(header).readUInt32BE();
    const type = tagAt(header, 4);
    if (length > MAX_PAYLOAD_BYTES || !/^[A-Za-z]{4}$/.test(type)) {
      throw editor.damaged('invalid chunk');
    }
    hasImage ||= type === 'IDAT';
    if (type === 'IEND') {
      if (!hasImage || length > 0) throw editor.damaged('unexpected IEND');
      yield* editor.keep(HEADER_BYTES + CRC_BYTES);
      return yield* editor.zeroRest();
    }
    const isCritical = /^[A-Z]/.test(type);
    if (isCritical || KEPT_TYPES.has(type)) {
      yield* editor.keep(HEADER_BYTES + length + CRC_BYTES);
    } else if (type === 'eXIf' && !hasExif) {
      hasExif = true;
      const head = yield* editor.require(Math.min(HEADER_BYTES + length, MAX_BUFFERED_BYTES));
      const reduced = reduceExif(head.subarray(HEADER_BYTES), length);
      yield* writeChunk(editor, length, reduced === undefined ? ERASED_TYPE : type, reduced);
    } else yield* writeChunk(editor, length, ERASED_TYPE);
  }
}

/** Overwrites a chunk with one of the same length: the payload is filled up with zeros, and gets a CRC. */
function* writeChunk(
  editor: StreamEditor,
  length: number,
  type: string,
  payload: Uint8Array = new Uint8Array(0),
): Steps {
  const head = Buffer.concat([Buffer.from(type, 'latin1'), payload]);
  yield* editor.keep(HEADER_BYTES - type.length);
  yield* editor.overwrite(head);
  let crc = crc32(head);
  for (let left = length - payload.length; left > 0; ) {
    const zeros = ZEROS.subarray(0, left);
    yield* editor.zero(zeros.length);
    crc = crc32(zeros, crc);
    left -= zeros.length;
  }
  const trailer = Buffer.alloc(CRC_BYTES);
  trailer.writeUInt32BE(crc);
  yield* editor.overwrite(trailer);
}
