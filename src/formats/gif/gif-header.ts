import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import type { ImageHeader, Prefix } from '../image-header.ts';
import { gifLabel, iterateGifBlocks } from './gif-blocks.ts';
import { canvasOf, type GifFrame, readFrame, unpackedPixels } from './gif-frames.ts';

const LOOP_APPLICATIONS = ['NETSCAPE2.0', 'ANIMEXTS1.0'];
/** Maximum blocks: twice those of 50 000 frames, the maximum setting. */
const MAX_BLOCKS = 200_000;

/**
 * Reads the header of a GIF as browsers do: the canvas, the default delay of 100 ms, and loops (n repeats are n + 1
 * plays, the last extension wins). The trailer may be missing. As in browsers and libnsgif, anything else between two
 * blocks ends the animation.
 */
export function readGifHeader(bytes: Uint8Array, prefix?: Prefix): ImageHeader {
  const reader = new ByteReader(bytes, 'GIF');
  const frames: GifFrame[] = [];
  let plays = 1;
  let isClean = true;
  let isRewritable = true;
  let blocks = 0;
  for (const block of iterateGifBlocks(bytes)) {
    const { start } = block;
    if (blocks > MAX_BLOCKS) throw corruptMedia(`GIF: more than ${MAX_BLOCKS} blocks`);
    blocks += 1;
    switch (block.kind) {
      case 'extension': {
        const data = start + 3;
        if (block.label === gifLabel.graphicControl) {
          isClean &&= reader.u8(start + 2) === 4 && block.end === data + 5;
        } else if (block.label === gifLabel.application && isLoop(reader, start)) {
          const repeats = reader.u16le(data + 13);
          plays = repeats === 0 ? 0 : repeats + 1;
          isClean &&= block.end === data + 16;
        } else {
          isClean = false;
        }
        break;
      }
      case 'image': {
        const hasPixels = reader.u16le(start + 5) > 0 && reader.u16le(start + 7) > 0;
        const hasColours = ((reader.u8(10) | reader.u8(start + 9)) & 0x80) !== 0;
        const rootBits = reader.u8(block.data);
        isRewritable &&= hasColours && hasPixels && rootBits >= 2 && rootBits <= 8;
        frames.push(readFrame(bytes, block));
        break;
      }
      case 'trailer':
        isClean &&= start + 1 === bytes.length;
        break;
      case 'junk':
        // Not sent or rewritten, since the decoder rejects some of these files.
        isClean = isRewritable = false;
        break;
      case 'truncated':
        if (prefix === undefined) throw corruptMedia('GIF: the file ends within a block');
        if (block.image !== undefined) frames.push(readFrame(bytes, block.image));
        break;
      case 'end of file':
        // A graphic control extension and its image form one block (GIF89a appendix B).
        if (prefix === undefined && block.control !== undefined) {
          throw corruptMedia('GIF: the file ends after a graphic control extension');
        }
    }
  }
  const [first] = frames;
  if (first === undefined) throw corruptMedia('GIF: no frames');
  const delaysMs = frames.map(({ delayCs }) => 10 * delayCs);
  const canvas = canvasOf(bytes, first);
  const codedPixels = frames.reduce(
    (most, frame) => Math.max(most, unpackedPixels(frame, canvas)),
    0,
  );
  return {
    format: 'gif',
    ...canvas,
    orientation: 1,
    frames: frames.length,
    ...(codedPixels > canvas.widthPx * canvas.heightPx ? { codedPixels } : {}),
    animation: frames.length > 1 ? { delaysMs, plays } : undefined,
    isClean,
    isRewritable,
  };
}

/** Whether a loop extension has one sub-block, of 3 bytes starting with 1. */
function isLoop(reader: ByteReader, position: number): boolean {
  const data = position + 3;
  return (
    reader.u8(position + 2) === 11 &&
    LOOP_APPLICATIONS.some((name) => hasAscii(reader.bytes, data, name)) &&
    reader.u8(data + 11) === 3 &&
    reader.u8(data + 12) === 1
  );
}
