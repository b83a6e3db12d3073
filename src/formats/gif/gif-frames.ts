import { gifLabel, walkGifBlocks } from './gif-blocks.ts';

/** One image as the decoder sees it, with the graphic control extensions before the image. */
export interface GifFrame {
  /** Offset of the image descriptor. */
  readonly start: number;
  /** Offset of the LZW code size, which the sub-blocks with the pixels follow. */
  readonly data: number;
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly delayCs: number;
  /** The packed field of GIF89a §23, without the transparency flag. */
  readonly disposal: number;
  readonly isTransparent: boolean;
  /** Colour index of transparent pixels, if the image has any. */
  readonly transparentIndex: number;
}

/** Flag in the packed field of GIF89a §23. */
export const TRANSPARENCY_FLAG = 0x01;
const DISPOSAL_MASK = 0x1c;

/** Default of libnsgif without a graphic control extension. */
export const DEFAULT_DELAY_CS = 10;

/** Returns the frames as `readGifHeader` counts them; `undefined` if the file ends within a block. */
export function readFrames(gif: Uint8Array): GifFrame[] | undefined {
  const frames: GifFrame[] = [];
  const byte = (offset: number): number => gif[offset] ?? 0;
  const u16 = (offset: number): number => byte(offset) | (byte(offset + 1) << 8);
  const opaque = {
    delayCs: DEFAULT_DELAY_CS,
    disposal: 0,
    isTransparent: false,
    transparentIndex: 0,
  };
  let control = opaque;
  const end = walkGifBlocks(gif, {
    onExtension: (label, start) => {
      if (label !== gifLabel.graphicControl) return;
      const packed = byte(start + 3);
      const isTransparent = (packed & TRANSPARENCY_FLAG) !== 0;
      control = {
        delayCs: u16(start + 4),
        disposal: packed & DISPOSAL_MASK,
        // The flag stays set, even if a later extension clears it.
        isTransparent: control.isTransparent || isTransparent,
        transparentIndex: isTransparent ? byte(start + 6) : control.transparentIndex,
      };
    },
    onImage: (start, data) => {
      const [left, top] = [u16(start + 1), u16(start + 3)];
      const [right, bottom] = [left + u16(start + 5), top + u16(start + 7)];
      frames.push({ start, data, left, top, right, bottom, ...control });
      control = opaque;
    },
  });
  return end.kind === 'truncated' ? undefined : frames;
}
