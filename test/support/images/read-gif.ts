import { type FrameInfo, GifReader } from 'omggif';
import { gifScreen, join, u16le } from '../../formats/containers.ts';

/** Reads the images of a GIF with omggif, an independent reader. */
export function readGifImages(gif: Uint8Array) {
  const reader = new GifReader(gif);
  return Array.from({ length: reader.numFrames() }, (_, number) => {
    const info = reader.frameInfo(number);
    return { ...info, indices: readIndices(gif, info) };
  });
}

/** Reads the indices of an image: omggif returns only colours, so the colour table maps each index to itself. */
function readIndices(gif: Uint8Array, { width, height, ...info }: FrameInfo): Uint8Array {
  const colours = Array.from({ length: 256 }, (_, index) => [index, index, index]);
  const still = join(
    ...[gifScreen(width, height).subarray(0, 10), 0xf7, 0, 0, ...colours.flat()],
    ...[0x2c, u16le(0, 0, width, height), info.interlaced ? 0x40 : 0],
    ...[gif.subarray(info.data_offset, info.data_offset + info.data_length), 0x3b],
  );
  const pixels = new Uint8Array(4 * width * height);
  new GifReader(still).decodeAndBlitFrameRGBA(0, pixels);
  return pixels.filter((_, at) => at % 4 === 0);
}
