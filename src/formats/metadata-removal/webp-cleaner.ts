import { tagAt } from '../byte-reader.ts';
import { FIRST_CHUNK } from '../webp/riff-chunks.ts';
import { reduceExif } from './reduced-exif.ts';
import { MAX_BUFFERED_BYTES, type Steps, type StreamEditor } from './stream-editor.ts';

/** Bytes of FourCC and length (RFC 9649 §2.3). */
const HEADER_BYTES = 8;

/** Bytes of a frame before its chunks (RFC 9649 §2.7.1.1). */
const FRAME_FIELDS_BYTES = 16;

/** VP8X flags that stay: profile, alpha, EXIF, animation; not XMP. The size follows 4 bytes. */
const KEPT_FLAGS = 0b0011_1010;
const SIZE_BYTES = 6;
const CANVAS_BYTES = 4 + SIZE_BYTES;

const BITSTREAMS: readonly string[] = ['VP8 ', 'VP8L', 'ALPH'];
const KEPT_CHUNKS: readonly string[] = [...BITSTREAMS, 'ICCP', 'ANIM'];

/** FourCC of an overwritten chunk: readers ignore unknown ones (RFC 9649 §2.7.1.6). */
const ERASED_CHUNK = Buffer.from('ZERO', 'latin1');

/** Overwrites the metadata of a WebP file (RFC 9649), and everything after it. */
export function* cleanWebp(editor: StreamEditor): Steps {
  const header = yield* editor.require(FIRST_CHUNK);
  const end = HEADER_BYTES + Buffer.from(header).readUInt32LE(4);
  if (end <= FIRST_CHUNK) throw editor.damaged('it is too short');
  yield* editor.keep(FIRST_CHUNK);
  let hasExif = false;
  yield* eachChunk(editor, end, function* (fourCc, length) {
    if (KEPT_CHUNKS.includes(fourCc)) yield* editor.keep(HEADER_BYTES + length);
    else if (fourCc === 'VP8X' && length >= CANVAS_BYTES) yield* cleanCanvas(editor, length);
    else if (fourCc === 'ANMF' && length >= FRAME_FIELDS_BYTES) yield* cleanFrame(editor, length);
    else if (fourCc === 'EXIF' && !hasExif) {
      hasExif = true;
      yield* cleanExif(editor, length);
    } else yield* eraseChunk(editor, length);
  });
  yield* editor.zeroRest();
}

/** Calls back for each chunk up to an offset; zeros the bytes between chunks. */
function* eachChunk(
  editor: StreamEditor,
  end: number,
  clean: (fourCc: string, length: number) => Steps,
): Steps {
  while (editor.position + HEADER_BYTES <= end) {
    editor.countPart();
    const header = yield* editor.require(HEADER_BYTES);
    const length = Buffer.from(header).readUInt32LE(4);
    const chunkEnd = editor.position + HEADER_BYTES + length;
    if (chunkEnd > end) throw editor.damaged('a chunk is too long');
    yield* clean(tagAt(header, 0), length);
    yield* editor.zero(Math.min(length % 2, end - chunkEnd));
  }
  yield* editor.zero(end - editor.position);
}

function* cleanCanvas(editor: StreamEditor, length: number): Steps {
  const fields = yield* editor.require(HEADER_BYTES + 1);
  const flags = (fields[HEADER_BYTES] ?? 0) & KEPT_FLAGS;
  yield* editor.keep(HEADER_BYTES);
  yield* editor.overwrite(Buffer.of(flags, 0, 0, 0));
  yield* editor.keep(SIZE_BYTES);
  yield* editor.zero(length - CANVAS_BYTES);
}

function* cleanFrame(editor: StreamEditor, length: number): Steps {
  const end = editor.position + HEADER_BYTES + length;
  yield* editor.keep(HEADER_BYTES + FRAME_FIELDS_BYTES);
  yield* eachChunk(editor, end, (fourCc, bytes) =>
    BITSTREAMS.includes(fourCc) ? editor.keep(HEADER_BYTES + bytes) : eraseChunk(editor, bytes),
  );
}

/**
 * Reduces EXIF to the orientation, 1 by default. The chunk stays because the preceding VP8X flags announce it: libvips
 * uses the orientation only with that flag, and rejects a flag without its chunk.
 */
function* cleanExif(editor: StreamEditor, length: number): Steps {
  const head = yield* editor.require(Math.min(HEADER_BYTES + length, MAX_BUFFERED_BYTES));
  const reduced = reduceExif(head.subarray(HEADER_BYTES), length, 1) ?? new Uint8Array(0);
  yield* editor.keep(HEADER_BYTES);
  yield* editor.overwrite(reduced);
  yield* editor.zero(length - reduced.length);
}

function* eraseChunk(editor: StreamEditor, length: number): Steps {
  yield* editor.overwrite(ERASED_CHUNK);
  yield* editor.keep(HEADER_BYTES - ERASED_CHUNK.length);
  yield* editor.zero(length);
}
