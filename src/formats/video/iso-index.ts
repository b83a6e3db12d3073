import { ByteReader, tooLargeMedia } from '../byte-reader.ts';
import { iterateBoxes } from '../iso-boxes.ts';

/** Properties of a track (ISO/IEC 14496-12 §8.3 to §8.7) that the demultiplexer does not report. */
export interface IsoTrack {
  readonly id: number;
  readonly isVideo: boolean;
  /** Type of the first sample entry, such as `avc1`; `encv` if encrypted. */
  readonly entry: string;
  readonly samples: number;
  /** Presented duration in seconds; `undefined` if the samples are in fragments. */
  readonly durationS: number | undefined;
  /** Whether the table of key frames is empty. */
  readonly lacksKeyFrames: boolean;
}

export interface IsoIndex {
  readonly tracks: readonly IsoTrack[];
  /** Declared duration of a fragmented movie in seconds. */
  readonly fragmentsDurationS: number | undefined;
}

/** Limits of contract §12. */
const MAX_TRACKS = 64;
const MAX_SAMPLES = 10_000_000;

/** Maximum samples that a fragment may declare only by a number. */
const MAX_FRAGMENT_SAMPLES = 1_000_000;

const CONTAINERS = new Set(
  'moov trak mdia minf dinf edts stbl sinf schi mvex traf moof udta wave'.split(' '),
);
const MAX_DEPTH = 12;

interface Edit {
  readonly durationS: number;
  readonly mediaTime: number;
}

class TrackTables {
  id = 0;
  handler = '';
  entry = '';
  timescale = 0;
  samples = 0;
  constantSize = false;
  timedSamples = 0;
  shiftedSamples = 0;
  longestChunk = 0;
  ticks = 0;
  /** Ticks from the decoding of the first sample to its presentation. */
  firstShift: number | undefined;
  /** Presented seconds by the track header, pauses included. */
  headerDurationS = 0;
  edits: Edit[] = [];
  keyFrames: number | undefined;
}

/**
 * Reads the payload of a movie box. @throws MediaError `MEDIA_TOO_LARGE` for impossible counts: the demultiplexer hangs
 * when it expands run lengths of 2^32 entries, stored in 8 bytes (21 of 4888 mutants)
 */
export function readIsoIndex(moov: Uint8Array): IsoIndex {
  const reader = new ByteReader(moov, 'ISO');
  const tracks: TrackTables[] = [];
  let timescale = 0;
  let fragmentTicks = 0;
  const visit: Visit = (type, at, end) => {
    const track = tracks.at(-1);
    if (type === 'trak') {
      if (tracks.length === MAX_TRACKS) throw tooLargeMedia(`ISO: more than ${MAX_TRACKS} tracks`);
      tracks.push(new TrackTables());
    } else if (type === 'mvhd') {
      timescale = reader.u32be(at + (reader.u8(at) === 1 ? 20 : 12));
    } else if (type === 'mehd') {
      fragmentTicks = reader.u8(at) === 1 ? reader.u64be(at + 4) : reader.u32be(at + 4);
    } else if (track !== undefined) readTrackBox(reader, track, type, at, end, timescale);
  };
  visitBoxes(reader, 0, moov.length, visit, 0);
  for (const track of tracks) checkCounts(track);
  return {
    tracks: tracks
      .filter(({ handler }) => handler === 'vide' || handler === 'soun')
      .map((track) => ({
        id: track.id,
        isVideo: track.handler === 'vide',
        entry: track.entry,
        samples: track.samples,
        durationS: presentedDurationS(track),
        lacksKeyFrames: track.keyFrames === 0 && track.samples > 0,
      })),
    fragmentsDurationS: fragmentTicks > 0 && timescale > 0 ? fragmentTicks / timescale : undefined,
  };
}

/** Throws for a fragment (a box with its header) that declares samples without describing them. */
export function checkFragment(moof: Uint8Array): void {
  const reader = new ByteReader(moof, 'ISO');
  let samples = 0;
  const visit: Visit = (type, at) => {
    if (type === 'trun') samples += reader.u32be(at + 4);
    if (samples > MAX_FRAGMENT_SAMPLES)
      throw tooLargeMedia(`ISO: ${samples} samples of a fragment`);
  };
  visitBoxes(reader, 0, moof.length, visit, 0);
}

type Visit = (type: string, start: number, end: number) => void;

/** Stops like the demultiplexer at a box that does not fit or has no size. */
function visitBoxes(
  reader: ByteReader,
  start: number,
  limit: number,
  visit: Visit,
  depth: number,
): void {
  for (const { type, start: at, end, isOpen, fits } of iterateBoxes(reader, start, limit)) {
    if (isOpen || !fits) return;
    visit(type, at, end);
    if (CONTAINERS.has(type) && depth < MAX_DEPTH) visitBoxes(reader, at, end, visit, depth + 1);
  }
}

function readTrackBox(
  reader: ByteReader,
  track: TrackTables,
  type: string,
  at: number,
  end: number,
  movieTimescale: number,
): void {
  // All of these boxes begin with version and flags.
  const isLong = end > at && reader.u8(at) === 1;
  const tick = (offset: number): number =>
    isLong ? reader.u64be(at + offset) : reader.u32be(at + offset);
  switch (type) {
    case 'tkhd':
      track.id = reader.u32be(at + (isLong ? 20 : 12));
      track.headerDurationS = readHeaderDurationS(tick(isLong ? 28 : 20), movieTimescale);
      break;
    case 'mdhd':
      track.timescale = reader.u32be(at + (isLong ? 20 : 12));
      break;
    case 'hdlr':
      // QuickTime has a second one in `minf`, of the data handler.
      if (track.handler === '') track.handler = reader.tag(at + 8);
      break;
    case 'stsd':
      if (reader.u32be(at + 4) > 0) track.entry ||= reader.tag(at + 12);
      break;
    case 'elst':
      track.edits = readEdits(reader, at, end, isLong, movieTimescale);
      break;
    case 'stsz':
      track.constantSize = reader.u32be(at + 4) !== 0;
      track.samples += reader.u32be(at + 8);
      break;
    case 'stz2':
      track.samples += reader.u32be(at + 8);
      break;
    case 'stss':
      track.keyFrames = reader.u32be(at + 4);
      break;
    case 'stts':
      forEachRun(reader, at, end, 8, (entry) => {
        const count = reader.u32be(entry);
        track.timedSamples += count;
        track.ticks += count * reader.u32be(entry + 4);
      });
      break;
    case 'ctts':
      forEachRun(reader, at, end, 8, (entry) => {
        track.shiftedSamples += reader.u32be(entry);
        track.firstShift ??= reader.u32be(entry + 4) | 0;
      });
      break;
    case 'stsc':
      forEachRun(reader, at, end, 12, (entry) => {
        track.longestChunk = Math.max(track.longestChunk, reader.u32be(entry + 4));
      });
      break;
  }
}

/** Returns 0 for an unknown duration, which has all bits set. */
function readHeaderDurationS(ticks: number, timescale: number): number {
  return timescale > 0 && ticks < 0xffff_ffff ? ticks / timescale : 0;
}

function forEachRun(
  reader: ByteReader,
  at: number,
  end: number,
  entryBytes: number,
  callback: (entry: number) => void,
): void {
  const first = at + 8;
  const count = Math.min(reader.u32be(at + 4), Math.floor((end - first) / entryBytes));
  for (let index = 0; index < count; index += 1) callback(first + index * entryBytes);
}

function readEdits(
  reader: ByteReader,
  at: number,
  end: number,
  isLong: boolean,
  movieTimescale: number,
): Edit[] {
  const edits: Edit[] = [];
  forEachRun(reader, at, end, isLong ? 20 : 12, (entry) => {
    const ticks = isLong ? reader.u64be(entry) : reader.u32be(entry);
    const time = isLong ? reader.u64be(entry + 8) : reader.u32be(entry + 4);
    const isEmpty = time >= (isLong ? 2 ** 63 : 2 ** 31);
    edits.push({ durationS: ticks / movieTimescale, mediaTime: isEmpty ? -1 : time });
  });
  return edits;
}

/** Throws for tables that would expand without end. Uncompressed audio is exempt: it has no tables. */
function checkCounts(track: TrackTables): void {
  const { samples, handler, constantSize, timedSamples, shiftedSamples, longestChunk } = track;
  const isUncompressedAudio = handler === 'soun' && constantSize;
  if (samples > MAX_SAMPLES && !isUncompressedAudio) throw tooLargeMedia(`ISO: ${samples} samples`);
  const longest = Math.max(timedSamples, shiftedSamples, longestChunk);
  if (longest > samples) throw tooLargeMedia(`ISO: tables of ${longest} samples for ${samples}`);
}

/** Returns the duration from the first presented sample to the end of the last, without a pause before. */
function presentedDurationS(track: TrackTables): number | undefined {
  const { timescale, edits, ticks, headerDurationS, firstShift = 0 } = track;
  const shown = edits.filter(({ mediaTime }) => mediaTime >= 0);
  const mediaS = ticks / timescale;
  if (!Number.isFinite(mediaS) || mediaS === 0) {
    // The samples are in fragments, or the tables were not read. Only the track header is reliable: Chromium's recorder
    // writes the media header in milliseconds, regardless of its time scale.
    const pauseS = edits.reduce((sum, edit) => sum + (edit.mediaTime < 0 ? edit.durationS : 0), 0);
    return headerDurationS > pauseS ? headerDurationS - pauseS : undefined;
  }
  if (shown.length === 0) return mediaS;
  return shown.reduce((sum, { durationS, mediaTime }) => {
    const skippedS = Math.max(0, mediaTime - firstShift) / timescale;
    const leftS = Math.max(0, mediaS - skippedS);
    return sum + (durationS > 0 ? Math.min(durationS, leftS) : leftS);
  }, 0);
}
