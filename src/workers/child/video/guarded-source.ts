import { Source } from 'mediabunny';
import { MediaError } from '../../../contract/errors.ts';
import { ByteReader, corruptMedia, hasAscii, tooLargeMedia } from '../../../formats/byte-reader.ts';
import { readBox } from '../../../formats/iso-boxes.ts';
import type { AvContainer } from '../../../formats/video/av-metadata.ts';
import {
  checkCluster,
  checkEbmlTable,
  type EbmlTracks,
  ebmlIds,
  endCluster,
  fitElement,
  MAX_CLUSTER_ID,
  readEbmlTracks,
  readElement,
} from '../../../formats/video/ebml-index.ts';
import { checkFragment, type IsoIndex, readIsoIndex } from '../../../formats/video/iso-index.ts';
import type { BlockCache } from './block-cache.ts';

/** Maximum bytes of the index: movie box, or EBML head, tracks and cues (contract §12). */
export const MAX_INDEX_BYTES = 16 * 2 ** 20;

/** Maximum bytes of a box or element header that the demultiplexer reads. */
const MAX_HEADER_BYTES = 16;

/** Maximum reads by the demultiplexer, most of them cached: a file may have millions of tiny boxes. */
const MAX_READS = 200_000;

/** Elements that are read even if the file is truncated; others outside of clusters are skipped. */
const CUT_IDS: readonly number[] = [ebmlIds.Segment, ebmlIds.Cluster];

const MAX_SINGLE_READ_BYTES = 64 * 1024;

/** Maximum bytes of a track before its tables: headers and sample descriptions. */
const HEAD_BYTES = 4096;

/** Titles, covers and positions. */
const IGNORED_BOXES = ['udta', 'meta'];

type Check = (bytes: Uint8Array) => void;

export type DemultiplexedContainer = Exclude<AvContainer, 'mp3'>;

/**
 * Checks each index before the demultiplexer parses it; recognizes it when the demultiplexer reads its header.
 * Overrides internal methods of mediabunny, whose version is pinned: its `CustomSource` reads ahead and keeps copies.
 */
export class GuardedSource extends Source {
  readonly container: DemultiplexedContainer;
  /** Set when the demultiplexer has read the index. */
  iso: IsoIndex | undefined;
  ebml: EbmlTracks | undefined;
  /** First error of a read or check; the demultiplexer may throw another one. */
  failure: unknown;
  readonly #cache: BlockCache;
  readonly #isEbml: boolean;
  readonly #isIso: boolean;
  readonly #checks = new Map<number, Check>();
  /** Offsets of the payloads of clusters. */
  readonly #clusters = new Set<number>();
  #movieStart: number | undefined;
  #reads = 0;

  constructor(cache: BlockCache, container: DemultiplexedContainer) {
    super();
    this.#cache = cache;
    this.container = container;
    this.#isIso = container === 'mp4' || container === 'mov';
    this.#isEbml = container === 'webm' || container === 'matroska';
  }

  _getFileSize(): number {
    return this.#cache.sizeBytes;
  }

  _read(start: number, end: number): ReadResult | Promise<ReadResult> {
    const bytes = this.#cache.peek(start, end);
    if (bytes !== undefined) return this.#deliver(start, bytes);
    const reading =
      start === this.#movieStart ? this.#readMovie(start, end) : this.#cache.read(start, end);
    return reading.then(
      (read) => this.#deliver(start, read),
      (error: unknown) => {
        this.failure ??= error;
        throw error;
      },
    );
  }

  _dispose(): void {
    this.#checks.clear();
  }

  #deliver(start: number, read: Uint8Array): ReadResult {
    let bytes = read;
    try {
      this.#reads += 1;
      if (this.#reads > MAX_READS) throw corruptMedia(`${MAX_READS} reads of a container`);
      if (bytes.length <= MAX_HEADER_BYTES) bytes = this.#scheduleCheck(start, bytes);
      else this.#checks.get(start)?.(bytes);
      const isLast = start + bytes.length === this.#cache.sizeBytes;
      if (isLast && this.#clusters.has(start)) bytes = endCluster(bytes);
    } catch (error) {
      this.failure ??= error;
      throw error;
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return { bytes, view, offset: start };
  }

  /** Schedules the check of the bytes after a header; returns the header, with a size that does not exceed the file. */
  #scheduleCheck(start: number, header: Uint8Array): Uint8Array {
    if (this.#isIso && header.length >= 8) {
      const type = Buffer.from(header.subarray(4, 8)).toString('latin1');
      const isLong = header[3] === 1 && header[0] === 0 && header[1] === 0 && header[2] === 0;
      if (type === 'moov') {
        this.#movieStart = start + (isLong ? 16 : 8);
        this.#checks.set(this.#movieStart, (moov) => {
          this.iso = readIsoIndex(moov);
        });
      }
      if (type === 'moof') this.#checks.set(start, checkFragment);
    }
    const element = this.#isEbml ? readElement(header, 0) : undefined;
    if (element === undefined) return header;
    const at = start + element.start;
    if (element.id === ebmlIds.Tracks) {
      this.#checks.set(at, (tracks) => {
        this.ebml = readEbmlTracks(tracks);
      });
    } else if (element.id === ebmlIds.Cluster) {
      this.#checks.set(at, checkCluster);
      this.#clusters.add(at);
    } else if (element.id === ebmlIds.Cues || element.id === ebmlIds.SeekHead) {
      this.#checks.set(at, (table) => checkEbmlTable(element.id, table));
    }
    // Truncated tables, such as cues, are skipped: they would make the demultiplexer fail.
    const isTable = element.id > MAX_CLUSTER_ID && !CUT_IDS.includes(element.id);
    return isTable ? header : fitElement(header, element, this.#cache.sizeBytes - start);
  }

  async #readMovie(start: number, end: number): Promise<Uint8Array> {
    if (end - start > MAX_INDEX_BYTES) throw tooLargeMedia(`a movie box of ${end - start} bytes`);
    return await readMovie(this.#cache, start, end);
  }
}

interface ReadResult {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly offset: number;
}

/** Runs a step of the demultiplexer, whose errors become `UNPROCESSABLE_MEDIA`. @throws MediaError of the source */
export async function demultiplex<Result>(
  source: GuardedSource,
  step: () => Promise<Result>,
): Promise<Result> {
  try {
    const result = await step();
    if (source.failure !== undefined) throw source.failure;
    return result;
  } catch (cause) {
    const error = source.failure ?? cause;
    source.failure = undefined;
    throw error instanceof MediaError
      ? error
      : new MediaError('UNPROCESSABLE_MEDIA', { cause: error });
  }
}

/**
 * Reads a movie box, with zeros instead of what the demultiplexer skips: metadata and audio's sample tables, half of
 * the box.
 */
async function readMovie(cache: BlockCache, start: number, end: number): Promise<Uint8Array> {
  if (end - start <= MAX_SINGLE_READ_BYTES) return await cache.read(start, end);
  const movie = Buffer.alloc(end - start);
  const copy = async (from: number, to: number): Promise<void> => {
    movie.set(await cache.read(from, to), from - start);
  };
  let hasVideo = false;
  for (let at = start; at + 8 <= end; ) {
    // The rest after a video is too short for another video track.
    if (hasVideo && end - at <= HEAD_BYTES) break;
    const head = await cache.read(at, Math.min(end, at + HEAD_BYTES));
    const box = readBox(new ByteReader(head, 'ISO'), 0, end - at);
    const next = at + box.end;
    if (box.isOpen || !box.fits) {
      await copy(at, end);
      break;
    }
    const isTrack = hasAscii(head, 4, 'trak');
    const headBytes = isTrack ? measureAudioHead(head) : undefined;
    if (headBytes !== undefined) await copy(at, Math.min(next, at + headBytes));
    else if (IGNORED_BOXES.some((type) => hasAscii(head, 4, type))) await copy(at, at + box.start);
    else {
      // Also reads the head of the next box.
      await cache.read(at, Math.min(end, next + HEAD_BYTES));
      await copy(at, next);
    }
    hasVideo ||= isTrack && headBytes === undefined;
    at = next;
  }
  return movie;
}

/** Returns the bytes of an audio track before its sample tables; `undefined` for anything else. */
function measureAudioHead(head: Uint8Array): number | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  // ISO/IEC 14496-12 §8.4.3: the type follows version, flags and four bytes.
  const handler = bytes.indexOf('hdlr', 0, 'latin1');
  const tables = bytes.indexOf('stbl', handler, 'latin1');
  const isAudio = handler >= 0 && hasAscii(bytes, handler + 12, 'soun');
  if (!isAudio || tables < 0 || !hasAscii(bytes, tables + 8, 'stsd')) return undefined;
  const end = tables + 4 + bytes.readUInt32BE(tables + 4);
  return end <= bytes.length ? end : undefined;
}
