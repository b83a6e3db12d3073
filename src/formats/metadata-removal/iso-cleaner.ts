import { ByteReader } from '../byte-reader.ts';
import { type Box, readBox } from '../iso-boxes.ts';
import { ErasedExtents } from './erased-extents.ts';
import { EMPTY_SPACE, ruleFor } from './iso-rules.ts';
import { cleanItemIndex } from './item-index.ts';
import {
  MAX_BUFFERED_BYTES,
  MetadataRemovalError,
  type Steps,
  type StreamEditor,
} from './stream-editor.ts';
import {
  cleanHandler,
  cleanSampleEntries,
  cleanTimes,
  hasTimedMetadata,
  keepSampleTable,
  readTrackExtents,
  type Track,
} from './track-cleaner.ts';

/** Bytes of size and type, with a 64-bit size, and of a user type (ISO/IEC 14496-12 §4.2). */
const HEADER_BYTES = 8;
const MAX_HEADER_BYTES = 16;
const USER_TYPE_BYTES = 16;

/** Maximum bytes of a HEIF file's item index, which is buffered: 100 times a phone's. */
const MAX_INDEX_BYTES = 1 << 20;

/** Maximum bytes of all sample tables of timed metadata: those of an hour with 60 frames a second. */
const MAX_TABLE_BYTES = 1 << 20;

/** Maximum tracks of timed metadata; a phone writes five. */
const MAX_METADATA_TRACKS = 1000;

/** Maximum extents in all item indexes, as in a HEIF file; an empty extent takes no bytes. */
const MAX_ITEM_EXTENTS = 100_000;

const ERASED = Buffer.from('free', 'latin1');

/** User type of XMP (XMP specification part 3). */
const XMP_USER_TYPE = 'be7acfcb97a942e89c71999491e3afac';

interface File {
  readonly editor: StreamEditor;
  /** Whether the items of the meta box are pictures. */
  readonly isHeif: boolean;
  readonly erased: ErasedExtents;
  /** Ids of the tracks of timed metadata. */
  readonly metadataTracks: Set<number>;
  tableBytes: number;
  itemExtents: number;
  hasMovie: boolean;
  hasItems: boolean;
}

/** Overwrites the metadata of an ISO file (ISO/IEC 14496-12): MP4, MOV or HEIF. */
export function* cleanIso(editor: StreamEditor, isHeif: boolean): Steps {
  const file: File = {
    editor,
    isHeif,
    erased: new ErasedExtents(),
    metadataTracks: new Set(),
    tableBytes: 0,
    itemExtents: 0,
    hasMovie: false,
    hasItems: false,
  };
  while ((yield* editor.peek(HEADER_BYTES)).length === HEADER_BYTES) {
    yield* cleanBox(file, 'file', Number.POSITIVE_INFINITY);
  }
  yield* editor.zeroRest();
  if (!file.hasMovie && !file.hasItems) throw editor.damaged('it has no index');
}

function* cleanBox(file: File, parent: string, limit: number, track?: Track): Steps {
  const { editor } = file;
  editor.countPart();
  const reader = new ByteReader(yield* editor.peek(MAX_HEADER_BYTES), 'ISO');
  const box = readBox(reader, 0, limit - editor.position);
  if (!box.fits) throw editor.damaged('a box is too long');
  const rule = ruleFor(parent, box.type);
  if (box.end === Number.POSITIVE_INFINITY && rule !== 'media data' && rule !== 'erase') {
    throw editor.damaged('a box without a size');
  }
  switch (rule) {
    case 'keep':
      return yield* editor.keep(box.end);
    case 'erase':
      return yield* eraseBox(editor, box);
    case 'refuse':
      throw new MetadataRemovalError(`Files with a box of type ${box.type} are not supported.`);
    case 'movie':
      if (file.hasMovie) throw editor.damaged('it has two movies');
      file.hasMovie = true;
      return yield* cleanChildren(file, box);
    case 'children':
      return yield* cleanChildren(file, box, track);
    case 'track':
      return yield* cleanTrack(file, box);
    case 'items':
      return yield* cleanItems(file, parent, box);
    case 'media data':
      return yield* keepMediaData(file, box);
    case 'vendor box of a fragment':
      return yield* cleanFragmentVendorBox(editor, box);
    case 'track fragment header':
      return yield* keepTrackFragmentHeader(file, box);
    case 'sample table':
      return yield* cleanSampleTable(file, box, track);
    case 'times':
      return yield* cleanTimes(editor, box, track);
    case 'handler':
      return yield* cleanHandler(editor, box, parent === 'mdia' ? track : undefined);
    case 'sample entries':
      return yield* cleanSampleEntries(editor, box, track);
  }
}

function* cleanChildren(file: File, box: Box, track?: Track): Steps {
  const { editor } = file;
  const end = editor.position + box.end;
  yield* editor.keep(box.start);
  while (editor.position + HEADER_BYTES <= end) yield* cleanBox(file, box.type, end, track);
  // QuickTime ends some lists of boxes with four zeros.
  yield* editor.zero(end - editor.position);
}

function* eraseBox(editor: StreamEditor, box: Box): Steps {
  yield* editor.keep(ERASED.length);
  if (EMPTY_SPACE.includes(box.type)) yield* editor.keep(ERASED.length);
  else yield* editor.overwrite(ERASED);
  yield* editor.keep(box.start - HEADER_BYTES);
  if (box.end === Number.POSITIVE_INFINITY) yield* editor.zeroRest();
  else yield* editor.zero(box.end - box.start);
}

/** Keeps media data except for the extents of metadata. */
function* keepMediaData({ editor, erased }: File, box: Box): Steps {
  const end = editor.position + box.end;
  yield* editor.keep(box.start);
  while (editor.position < end) {
    const extent = erased.next(editor.position);
    const start = Math.min(extent?.start ?? end, end);
    if (start > editor.position) {
      // An open last box ends with the file.
      const chunk = yield* editor.peekChunk();
      if (chunk.length === 0 && end === Number.POSITIVE_INFINITY) return;
      yield* editor.keep(Math.min(start - editor.position, Math.max(chunk.length, 1)));
    } else yield* editor.zero(Math.min(extent?.end ?? end, end) - editor.position);
  }
}

/** Cleans the index of a HEIF file, or erases that of a movie or track, together with the metadata items. */
function* cleanItems(file: File, parent: string, box: Box): Steps {
  const { editor, isHeif } = file;
  const isIndex = isHeif && parent === 'file';
  if (isIndex && file.hasItems) throw editor.damaged('it has two indexes');
  const maxBytes = isHeif ? MAX_INDEX_BYTES : MAX_BUFFERED_BYTES;
  if (box.end > maxBytes) {
    if (isHeif) throw new MetadataRemovalError('The index of the file is too long.');
    return yield* eraseBox(editor, box);
  }
  const bytes = yield* editor.require(box.end);
  const hasLocations = Buffer.from(bytes).includes('iloc');
  if (!isIndex && !hasLocations) return yield* eraseBox(editor, box);
  const cleaned = cleanItemIndex(bytes, editor.position);
  file.itemExtents += cleaned.extentCount;
  if (file.itemExtents > MAX_ITEM_EXTENTS) {
    throw new MetadataRemovalError('The metadata is in too many pieces.');
  }
  file.erased.add(cleaned.extents);
  if (!isIndex) return yield* eraseBox(editor, box);
  file.hasItems = true;
  yield* editor.overwrite(cleaned.bytes);
}

function* cleanTrack(file: File, box: Box): Steps {
  const { editor, metadataTracks } = file;
  const track: Track = { id: 0, handler: '', tables: new Map() };
  yield* cleanChildren(file, box, track);
  if (!hasTimedMetadata(track)) return;
  metadataTracks.add(track.id);
  if (metadataTracks.size > MAX_METADATA_TRACKS) throw editor.damaged('it has too many tracks');
  const extents = readTrackExtents(track);
  if (extents.some(({ start }) => start < editor.position)) {
    throw new MetadataRemovalError('Timed metadata comes before the index of the file.');
  }
  file.erased.add(extents);
}

function* cleanSampleTable(file: File, box: Box, track: Track | undefined): Steps {
  if (track === undefined || !hasTimedMetadata(track)) return yield* file.editor.keep(box.end);
  file.tableBytes += box.end;
  if (file.tableBytes > MAX_TABLE_BYTES) {
    throw new MetadataRemovalError('The file has too much timed metadata.');
  }
  yield* keepSampleTable(file.editor, box, track);
}

/** Keeps boxes that players of encrypted or live streams need; erases XMP. */
function* cleanFragmentVendorBox(editor: StreamEditor, box: Box): Steps {
  const head = yield* editor.require(Math.min(box.end, box.start + USER_TYPE_BYTES));
  const userType = Buffer.from(head.subarray(box.start)).toString('hex');
  if (userType === XMP_USER_TYPE) yield* eraseBox(editor, box);
  else yield* editor.keep(box.end);
}

function* keepTrackFragmentHeader({ editor, metadataTracks }: File, box: Box): Steps {
  const head = yield* editor.require(Math.min(box.end, box.start + 8));
  if (metadataTracks.has(new ByteReader(head, 'tfhd').u32be(box.start + 4))) {
    throw new MetadataRemovalError('Timed metadata in fragments is not supported.');
  }
  yield* editor.keep(box.end);
}
