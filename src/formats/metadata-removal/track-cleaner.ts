import { ByteReader, type Extent, hasAscii, tagAt } from '../byte-reader.ts';
import type { Box } from '../iso-boxes.ts';
import { HANDLER_RESERVED_AT } from './item-index.ts';
import { readSampleExtents } from './sample-extents.ts';
import type { Steps, StreamEditor } from './stream-editor.ts';

export interface Track {
  id: number;
  /** Type of the media; empty until it has been read. */
  handler: string;
  /** Payloads of the sample tables, if the track has timed metadata. */
  readonly tables: Map<string, Buffer>;
}

/** Handlers of tracks that are played or drawn, or that other tracks need. All others count as timed metadata. */
const PLAYED_HANDLERS: readonly string[] = [
  ...['vide', 'soun', 'text', 'sbtl', 'subt', 'subp', 'clcp', 'tmcd', 'pict', 'auxv', 'hint'],
  ...['odsm', 'sdsm'],
];

/** Handlers of tracks whose sample entries name an encoder, in addition to a vendor. */
const PICTURE_HANDLERS: readonly string[] = ['vide', 'pict', 'auxv'];

/** Name of a track whose subtitles are a drone's positions. */
const POSITIONS_NAME = 'DJI.Subtitle';

/** Bytes of reserved fields, and a name of 255 bytes after its length. */
const MAX_NAME_BYTES = 12 + 256;

/** Internal handler for such a track, instead of the one for subtitles. */
const POSITIONS_HANDLER = 'positions';

/** Version, flags and number of entries of `stsd`. */
const ENTRIES_HEADER_BYTES = 8;

/** Offsets of the fields of an entry (ISO/IEC 14496-12 §8.5.2, §12.1.3; QuickTime File Format). */
const BOX_HEADER_BYTES = 8;
const entryField = {
  anyEnd: 16,
  timecodeEnd: 34,
  vendor: { start: 20, end: 24 },
  encoder: { start: 50, end: 82 },
} as const;

/** Encoder names by which ffmpeg chooses a decoder, with their length. */
const DECODER_NAMES = ["\x19Planar Y'CbCr 8-bit 4:2:0", '\x0dSorenson H263'];

export function hasTimedMetadata({ handler }: Track): boolean {
  return !PLAYED_HANDLERS.includes(handler);
}

export function readTrackExtents({ tables }: Track): readonly Extent[] {
  return tables.size === 0 ? [] : readSampleExtents(tables);
}

/** Erases the creation and modification times of a movie, track or media header; reads the track's id. */
export function* cleanTimes(editor: StreamEditor, box: Box, track: Track | undefined): Steps {
  const isLong = new ByteReader(yield* editor.require(box.start + 4), box.type).u8(box.start) === 1;
  const timesBytes = isLong ? 16 : 8;
  const end = box.start + 4 + timesBytes;
  const head = yield* editor.require(Math.min(end + 4, box.end));
  if (track !== undefined && box.type === 'tkhd') {
    track.id = new ByteReader(head, box.type).u32be(end);
  }
  if (box.end < end) throw editor.damaged(`${box.type} is too short`);
  yield* editor.keep(box.start + 4);
  yield* editor.zero(timesBytes);
  yield* editor.keep(box.end - end);
}

/** Erases the manufacturer and name of a handler; reads its type, and whether the name declares positions. */
export function* cleanHandler(editor: StreamEditor, box: Box, track: Track | undefined): Steps {
  const reserved = box.start + HANDLER_RESERVED_AT;
  if (box.end < reserved) throw editor.damaged('hdlr is too short');
  const head = yield* editor.require(Math.min(box.end, reserved + MAX_NAME_BYTES));
  const hasPositions = Buffer.from(head.subarray(reserved)).includes(POSITIONS_NAME);
  if (track !== undefined) {
    track.handler ||= hasPositions ? POSITIONS_HANDLER : tagAt(head, reserved - 4);
  }
  yield* editor.keep(reserved);
  yield* editor.zero(box.end - reserved);
}

/** Keeps a table, and copies it into the track. */
export function* keepSampleTable(editor: StreamEditor, box: Box, { tables }: Track): Steps {
  yield* editor.keep(box.start);
  const table = Buffer.alloc(box.end - box.start);
  for (let at = 0; at < table.length; ) {
    const chunk = (yield* editor.peekChunk()).subarray(0, table.length - at);
    table.set(chunk, at);
    yield* editor.keep(Math.max(chunk.length, 1));
    at += chunk.length;
  }
  tables.set(box.type, table);
}

/** Erases names of encoders, and descriptions of timed metadata, which list its fields. */
export function* cleanSampleEntries(
  editor: StreamEditor,
  box: Box,
  track: Track | undefined,
): Steps {
  if (track === undefined || track.handler === '') throw editor.damaged('unexpected stsd');
  const end = editor.position + box.end;
  yield* editor.keep(Math.min(box.start + ENTRIES_HEADER_BYTES, box.end));
  while (editor.position + BOX_HEADER_BYTES <= end) {
    editor.countPart();
    const header = new ByteReader(yield* editor.require(BOX_HEADER_BYTES), 'stsd');
    const length = header.u32be(0);
    if (length < BOX_HEADER_BYTES || editor.position + length > end) {
      throw editor.damaged('a sample entry is too long');
    }
    const isPicture = PICTURE_HANDLERS.includes(track.handler);
    if (hasTimedMetadata(track)) yield* eraseDescription(editor, length, entryField.anyEnd);
    else if (track.handler === 'tmcd') {
      yield* eraseDescription(editor, length, entryField.timecodeEnd);
    } else if (isPicture || track.handler === 'soun') yield* cleanEntry(editor, length, isPicture);
    else yield* editor.keep(length);
  }
  yield* editor.keep(end - editor.position);
}

function* cleanEntry(editor: StreamEditor, length: number, isPicture: boolean): Steps {
  const { vendor, encoder } = entryField;
  if (length < (isPicture ? encoder.end : vendor.end)) return yield* editor.keep(length);
  yield* editor.keep(vendor.start);
  yield* editor.zero(vendor.end - vendor.start);
  if (!isPicture) return yield* editor.keep(length - vendor.end);
  yield* editor.keep(encoder.start - vendor.end);
  const name = yield* editor.require(encoder.end - encoder.start);
  if (DECODER_NAMES.some((each) => hasAscii(name, 0, each))) yield* editor.keep(name.length);
  else yield* editor.zero(name.length);
  yield* editor.keep(length - encoder.end);
}

/** Keeps the first fields of a sample entry, and makes the rest empty space. */
function* eraseDescription(editor: StreamEditor, length: number, keptBytes: number): Steps {
  const rest = length - keptBytes;
  if (rest < BOX_HEADER_BYTES) return yield* editor.keep(length);
  yield* editor.keep(keptBytes);
  const header = Buffer.alloc(BOX_HEADER_BYTES);
  header.writeUInt32BE(rest);
  header.write('free', 4, 'latin1');
  yield* editor.overwrite(header);
  yield* editor.zero(rest - header.length);
}
