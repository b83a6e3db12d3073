import { tooLargeMedia } from '../byte-reader.ts';

/** Properties of Matroska tracks that the demultiplexer does not report. */
export interface EbmlTracks {
  readonly count: number;
  /** Whether a track is encrypted or compressed in an unknown way, so that the demultiplexer drops it. */
  readonly hasUnreadable: boolean;
}

/** Limits of contract §12. */
const MAX_TRACKS = 64;
/** Maximum cue points, and laced frames of a cluster; a film of three hours has a few thousand cue points. */
const MAX_CUES = 100_000;
const MAX_LACED_FRAMES = 50_000;
const MAX_SEEKS = 1_000;

/** Element ids (RFC 9559 §5.1). */
export const ebmlIds = {
  Segment: 0x18538067,
  SeekHead: 0x114d9b74,
  Tracks: 0x1654ae6b,
  Cues: 0x1c53bb6b,
  Cluster: 0x1f43b675,
} as const;
const CUE_POINT = 0xbb;
const SEEK = 0x4dbb;
const TRACK_ENTRY = 0xae;
const TRACK_TYPE = 0x83;
const VIDEO = 1;
const FLAG_ENABLED = 0xb9;
const CONTENT_ENCODINGS = 0x6d80;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;
const SIMPLE_BLOCK = 0xa3;
const VOID = 0xec;
/** Maximum id within a cluster; tables have four-byte ids. */
export const MAX_CLUSTER_ID = 0xffff;

interface Element {
  readonly id: number;
  readonly start: number;
  /** `undefined` for an unknown size. */
  readonly end: number | undefined;
}

/** Reads the header of an element (RFC 8794 §4 and §5). */
export function readElement(bytes: Uint8Array, at: number): Element | undefined {
  const idBytes = Math.clz32(bytes[at] ?? 0) - 23;
  const sizeAt = at + idBytes;
  const sizeBytes = Math.clz32(bytes[sizeAt] ?? 0) - 23;
  const start = sizeAt + sizeBytes;
  if (idBytes > 4 || sizeBytes > 8 || start > bytes.length) return undefined;
  let id = 0;
  for (let index = at; index < sizeAt; index += 1) id = id * 256 + (bytes[index] ?? 0);
  let size = (bytes[sizeAt] ?? 0) - 2 ** (8 - sizeBytes);
  for (let index = sizeAt + 1; index < start; index += 1) size = size * 256 + (bytes[index] ?? 0);
  const isUnknown = size === 2 ** (7 * sizeBytes) - 1;
  return { id, start, end: isUnknown ? undefined : start + size };
}

/** Writes the size of an element into all bytes `[at, start)`. */
function writeSize(bytes: Uint8Array, at: number, start: number, size: number): void {
  let left = size;
  for (let index = start - 1; index >= at; index -= 1) {
    bytes[index] = left % 256;
    left = Math.floor(left / 256);
  }
  bytes[at] = (bytes[at] ?? 0) + 2 ** (8 - start + at);
}

/** Returns the header of an element; reduces a size that exceeds its file. */
export function fitElement(
  header: Uint8Array,
  { start, end }: Element,
  roomBytes: number,
): Uint8Array {
  if (end === undefined || end <= roomBytes || start > roomBytes) return header;
  const fitting = Uint8Array.from(header);
  writeSize(fitting, Math.clz32(header[0] ?? 0) - 23, start, roomBytes - start);
  return fitting;
}

/** Returns the payload of a truncated cluster, with its last element replaced by a void. */
export function endCluster(payload: Uint8Array): Uint8Array {
  let at = 0;
  for (const { end } of readChildren(payload)) at = end ?? at;
  const room = payload.length - at;
  const cut = readElement(payload, at);
  if (room < 2 || (cut !== undefined && cut.id > MAX_CLUSTER_ID)) return payload;
  const ended = Uint8Array.from(payload);
  const start = at + (room < 128 ? 2 : 9);
  ended[at] = VOID;
  writeSize(ended, at + 1, start, payload.length - start);
  return ended;
}

/** Yields the children of an element, up to the first that exceeds it. */
function* readChildren(bytes: Uint8Array, from = 0, to = bytes.length): Generator<Element, void> {
  for (let position = from; position < to; ) {
    const element = readElement(bytes, position);
    if (element?.end === undefined || element.end > to) return;
    yield element;
    position = element.end;
  }
}

/** Reads the tracks. Enables disabled videos in place if no video is enabled: players show them in that case. */
export function readEbmlTracks(payload: Uint8Array): EbmlTracks {
  let count = 0;
  let hasUnreadable = false;
  let hasEnabledVideo = false;
  const disabled: number[] = [];
  for (const { id, start, end } of readChildren(payload)) {
    if (id !== TRACK_ENTRY) continue;
    count += 1;
    if (count > MAX_TRACKS) throw tooLargeMedia(`EBML: more than ${MAX_TRACKS} tracks`);
    let isVideo = false;
    let flagAt: number | undefined;
    for (const { id, start: at, end: after = at } of readChildren(payload, start, end)) {
      hasUnreadable ||= id === CONTENT_ENCODINGS;
      const value = payload.subarray(at, after);
      if (id === TRACK_TYPE) isVideo = value.at(-1) === VIDEO;
      const isOff = id === FLAG_ENABLED && value.length > 0 && value.every((byte) => byte === 0);
      if (isOff) flagAt = after - 1;
    }
    if (isVideo && flagAt !== undefined) disabled.push(flagAt);
    hasEnabledVideo ||= isVideo && flagAt === undefined;
  }
  if (!hasEnabledVideo) for (const flagAt of disabled) payload[flagAt] = 1;
  return { count, hasUnreadable };
}

/** Throws for more entries than the demultiplexer can sort and merge in time. */
export function checkEbmlTable(id: number, payload: Uint8Array): void {
  let entries = 0;
  for (const child of readChildren(payload)) {
    if (child.id === CUE_POINT || child.id === SEEK) entries += 1;
  }
  const max = id === ebmlIds.Cues ? MAX_CUES : MAX_SEEKS;
  if (entries > max) throw tooLargeMedia(`EBML: ${entries} entries of a table`);
}

/** Throws for more laced frames than the demultiplexer can insert in time: a block of 4 bytes may have 256. */
export function checkCluster(payload: Uint8Array): void {
  let frames = 0;
  const count = (start: number): void => {
    const track = Math.clz32(payload[start] ?? 0) - 23;
    const flags = payload[start + track + 2] ?? 0;
    if ((flags & 6) !== 0) frames += 1 + (payload[start + track + 3] ?? 0);
    if (frames > MAX_LACED_FRAMES) throw tooLargeMedia(`EBML: ${frames} laced frames`);
  };
  for (const { id, start, end } of readChildren(payload)) {
    if (id === SIMPLE_BLOCK) count(start);
    if (id !== BLOCK_GROUP) continue;
    for (const child of readChildren(payload, start, end))
      if (child.id === BLOCK) count(child.start);
  }
}
