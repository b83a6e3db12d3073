import { hasAscii } from '../../../formats/byte-reader.ts';
import { readMp3Frame } from '../../../formats/video/sniff-av.ts';
import type { BlockCache } from './block-cache.ts';

const ID3_HEADER_BYTES = 10;

/** Bytes after a tag in which the first frame must begin; its header may contain the number of frames. */
const MAX_FIRST_BYTES = 4096;

/** Offsets of `Xing` in a frame, by version and channels; that of `VBRI` is constant. */
const XING_OFFSETS = [13, 21, 36];
const VBRI_OFFSET = 36;

/**
 * Returns the duration of MPEG audio layer III in seconds: from its header (Xing, Info, VBRI), else by counting frames.
 *
 * @param maxBytes of a file whose frames are counted; returns `undefined` for a longer one
 */
export async function readMp3DurationS(
  cache: BlockCache,
  maxBytes: number,
): Promise<number | undefined> {
  const { sizeBytes } = cache;
  const read = (start: number, bytes: number): Promise<Uint8Array> =>
    cache.read(Math.min(start, sizeBytes - 1), Math.min(start + bytes, sizeBytes));
  let start = 0;
  for (let tags = 0; tags < 8; tags += 1) {
    const tag = await read(start, ID3_HEADER_BYTES);
    if (!hasAscii(tag, 0, 'ID3')) break;
    const [, , , , , flags = 0, ...size] = tag;
    const footer = (flags & 0x10) === 0 ? 0 : ID3_HEADER_BYTES;
    start += ID3_HEADER_BYTES + footer + size.reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
    if (start >= sizeBytes) return undefined;
  }
  const head = await read(start, MAX_FIRST_BYTES);
  const first = head.findIndex((_, at) => readMp3Frame(head, at) !== undefined);
  const frame = readMp3Frame(head, first);
  if (frame === undefined) return undefined;
  const frames = readFrameCount(head.subarray(first));
  if (frames !== undefined) return frames * frame.durationS;
  if (sizeBytes - start > maxBytes) return undefined;
  return countFramesS(await read(start + first, sizeBytes));
}

function readFrameCount(frame: Uint8Array): number | undefined {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  const xing = XING_OFFSETS.find(
    (at) => hasAscii(frame, at, 'Xing') || hasAscii(frame, at, 'Info'),
  );
  if (xing !== undefined && xing + 12 <= frame.length) {
    return (view.getUint32(xing + 4) & 1) === 1 ? view.getUint32(xing + 8) : undefined;
  }
  const isVbri = hasAscii(frame, VBRI_OFFSET, 'VBRI') && VBRI_OFFSET + 18 <= frame.length;
  return isVbri ? view.getUint32(VBRI_OFFSET + 14) : undefined;
}

/** Sums the durations of all frames, and skips other bytes. */
function countFramesS(bytes: Uint8Array): number {
  let seconds = 0;
  for (let at = 0; at < bytes.length; ) {
    const frame = bytes[at] === 0xff ? readMp3Frame(bytes, at) : undefined;
    seconds += frame?.durationS ?? 0;
    at += frame?.bytes ?? 1;
  }
  return seconds;
}
