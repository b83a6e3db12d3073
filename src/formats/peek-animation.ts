import { hasAscii } from './byte-reader.ts';
import { walkGifBlocks } from './gif/gif-blocks.ts';
import { isGif, readGifHeader } from './gif/gif-header.ts';
import type { ImageFacts } from './image-facts.ts';
import { isAnimatedWebp, readWebpCanvas } from './webp/webp-header.ts';

/** Where the chunks of a WebP begin, and what stands before each payload (RFC 9649 §2.3, §2.4). */
const RIFF_HEADER_BYTES = 12;
const CHUNK_HEADER_BYTES = 8;
/** Offset of the duration in the payload of ANMF (RFC 9649 §2.7.1.1). */
const DURATION_OFFSET = 12;

/**
 * What the first bytes of an animation tell, before the others are read: facts in which `frames` and
 * `animation` are those that begin within these bytes, so no more than there are. `isClean` is true
 * unless something is known to stand against it.
 *
 * @returns `undefined` where fewer than two frames are seen, or where anything is wrong: who reads
 *   the whole will tell
 */
export function peekAnimation(prefix: Uint8Array): ImageFacts | undefined {
  if (isGif(prefix)) return peekGif(prefix);
  if (isAnimatedWebp(prefix)) return peekWebp(prefix);
  return undefined;
}

/** A GIF may end after any frame, so what ends with the last whole one is a GIF. */
function peekGif(prefix: Uint8Array): ImageFacts | undefined {
  let frames = 0;
  let end = 0;
  walkGifBlocks(prefix, {
    onExtension: () => undefined,
    onImage: (_start, _data, imageEnd) => {
      frames += 1;
      end = imageEnd;
    },
  });
  if (frames < 2) return undefined;
  return readGifHeader(prefix.subarray(0, end));
}

function peekWebp(prefix: Uint8Array): ImageFacts | undefined {
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  const delaysMs: number[] = [];
  for (let position = RIFF_HEADER_BYTES; ; ) {
    const start = position + CHUNK_HEADER_BYTES;
    if (start + DURATION_OFFSET + 4 > prefix.length) break;
    if (hasAscii(prefix, position, 'ANMF')) {
      delaysMs.push(view.getUint32(start + DURATION_OFFSET, true) & 0xff_ff_ff);
    }
    const bytes = view.getUint32(position + 4, true);
    position = start + bytes + (bytes % 2);
  }
  if (delaysMs.length < 2) return undefined;
  return {
    format: 'webp',
    ...readWebpCanvas(prefix),
    orientation: 1,
    frames: delaysMs.length,
    animation: { delaysMs, plays: 0 },
    isClean: true,
  };
}
