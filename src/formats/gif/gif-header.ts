import { ByteReader, corruptMedia, hasAscii } from '../byte-reader.ts';
import type { ImageFacts } from '../image-facts.ts';
import { gifLabel } from './gif-blocks.ts';
import { canvasOf, readFrames, unpackedPixels } from './gif-frames.ts';

const loopApplications = ['NETSCAPE2.0', 'ANIMEXTS1.0'];
/** Twice the blocks of 50 000 frames, the highest limit an operator can set, with their controls; bounds the walk. */
const maxBlocks = 200_000;

/**
 * Reads the facts of a GIF (GIF89a specification), as browsers do: the canvas, the default delay of 100 ms, the
 * meaning of a loop extension (n repeats are n + 1 plays, the last extension wins, none is 1).
 *
 * The file may end between two blocks without a trailer. Anything but a block between two blocks ends the animation, as
 * in browsers and libnsgif.
 */
export function readGifHeader(bytes: Uint8Array): ImageFacts {
  const reader = new ByteReader(bytes, 'GIF');
  let isControlOpen = false;
  let plays = 1;
  let isClean = true;
  let isRewritable = true;
  let blocks = 0;
  const countBlock = (): void => {
    blocks += 1;
    if (blocks > maxBlocks) throw corruptMedia(`GIF: more than ${maxBlocks} blocks`);
  };
  const { frames, end } = readFrames(bytes, {
    onExtension: (label, start, end) => {
      countBlock();
      const data = start + 3;
      if (label === gifLabel.graphicControl) {
        isControlOpen = true;
        isClean &&= reader.u8(start + 2) === 4 && end === data + 5;
      } else if (label === gifLabel.application && isLoop(reader, start)) {
        const repeats = reader.u16le(data + 13);
        plays = repeats === 0 ? 0 : repeats + 1;
        isClean &&= end === data + 16;
      } else {
        isClean = false;
      }
    },
    onImage: (start, data) => {
      countBlock();
      const hasPixels = reader.u16le(start + 5) > 0 && reader.u16le(start + 7) > 0;
      const hasColours = ((reader.u8(10) | reader.u8(start + 9)) & 0x80) !== 0;
      const rootBits = reader.u8(data);
      isRewritable &&= hasColours && hasPixels && rootBits >= 2 && rootBits <= 8;
      isControlOpen = false;
    },
  });
  const { kind, position } = end;
  if (kind === 'truncated') throw corruptMedia('GIF: the file ends within a block');
  // The decoder rejects some of these files, so it must see them.
  if (kind === 'junk') isClean = isRewritable = false;
  if (kind === 'trailer') isClean &&= position + 1 === bytes.length;
  const [first] = frames;
  if (first === undefined) throw corruptMedia('GIF: no frames');
  // GIF89a appendix B: a graphic control extension and its image are one block.
  if (kind === 'end of file' && isControlOpen) {
    throw corruptMedia('GIF: the file ends before the image of the last graphic control extension');
  }
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

/** Whether a loop extension has its only sub-block: 3 bytes, of which the first is 1. */
function isLoop(reader: ByteReader, position: number): boolean {
  const data = position + 3;
  return (
    reader.u8(position + 2) === 11 &&
    loopApplications.some((name) => hasAscii(reader.bytes, data, name)) &&
    reader.u8(data + 11) === 3 &&
    reader.u8(data + 12) === 1
  );
}
