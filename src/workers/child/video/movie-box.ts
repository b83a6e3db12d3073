import { hasAscii } from '../../../formats/byte-reader.ts';
import type { BlockCache } from './block-cache.ts';

/** Movie boxes up to this size are read as a whole. */
const MAX_WHOLE_BYTES = 64 * 1024;

/** Bytes of a track that hold its headers and the description of its samples; its tables follow. */
const HEAD_BYTES = 4096;

/** Boxes that nobody reads: titles, covers, positions. */
const UNREAD = ['udta', 'meta'];

/**
 * Reads the payload of a movie box. The sample tables of sound, which are half of it, and metadata are left out: zeros
 * stand for them, at which the demultiplexer goes on to the next box.
 */
export async function readMovie(
  cache: BlockCache,
  start: number,
  end: number,
): Promise<Uint8Array> {
  if (end - start <= MAX_WHOLE_BYTES) return await cache.read(start, end);
  const movie = Buffer.alloc(end - start);
  const copy = async (from: number, to: number): Promise<void> => {
    movie.set(await cache.read(from, to), from - start);
  };
  let hasVideo = false;
  for (let at = start; at + 8 <= end; ) {
    // What is left behind a video is too short for another one.
    if (hasVideo && end - at <= HEAD_BYTES) break;
    const head = await cache.read(at, Math.min(end, at + HEAD_BYTES));
    const size = new DataView(head.buffer, head.byteOffset).getUint32(0);
    const next = at + size;
    if (size < 8 || next > end) {
      await copy(at, end);
      break;
    }
    const isTrack = hasAscii(head, 4, 'trak');
    const sound = isTrack ? measureSound(head) : undefined;
    if (sound !== undefined) await copy(at, Math.min(next, at + sound));
    else if (UNREAD.some((type) => hasAscii(head, 4, type))) await copy(at, at + 8);
    else {
      // The head of the next box comes by the same read.
      await cache.read(at, Math.min(end, next + HEAD_BYTES));
      await copy(at, next);
    }
    hasVideo ||= isTrack && sound === undefined;
    at = next;
  }
  return movie;
}

/**
 * Returns the bytes of a track of sound in front of its tables: up to the end of the description of its samples;
 * `undefined` for another track, or one in another order.
 */
function measureSound(head: Uint8Array): number | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  // Of the media (ISO/IEC 14496-12 §8.4.3): the type stands behind version, flags and four bytes.
  const handler = bytes.indexOf('hdlr', 0, 'latin1');
  const tables = bytes.indexOf('stbl', handler, 'latin1');
  const isSound = handler >= 0 && hasAscii(bytes, handler + 12, 'soun');
  if (!isSound || tables < 0 || !hasAscii(bytes, tables + 8, 'stsd')) return undefined;
  const end = tables + 4 + bytes.readUInt32BE(tables + 4);
  return end <= bytes.length ? end : undefined;
}
