import { gifLabel, walkGifBlocks } from './gif-blocks.ts';

/** What the decoder makes of one image and of the graphic control extensions before it. */
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
  /** Of what is transparent, where anything is. */
  readonly transparentIndex: number;
}

/** In the packed field of GIF89a §23. */
export const TRANSPARENCY_FLAG = 0x01;
const DISPOSAL_MASK = 0x1c;

/** What libnsgif takes where there is no graphic control extension. */
export const DEFAULT_DELAY_CS = 10;

/** The frames as `readGifHeader` counts them; undefined where the file ends within a block. */
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
        // Once set it stays, whatever a further extension says.
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
