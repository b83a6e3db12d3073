import { hasAscii } from '../byte-reader.ts';

/** Bytes of the signature and the logical screen descriptor. */
export const SCREEN_BYTES = 13;
/** First bytes of blocks (GIF89a appendix A). */
export const gifBlock = { extension: 0x21, image: 0x2c, trailer: 0x3b } as const;

/** Labels of the extensions that we use (GIF89a §23, §24, §26). */
export const gifLabel = { graphicControl: 0xf9, comment: 0xfe, application: 0xff } as const;

/** Maximum bits of a code (GIF89a appendix F); libnsgif rejects a root code of this size. */
export const MAX_CODE_BITS = 12;

export function isGif(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 0, 'GIF8');
}

/** An extension; offsets count from the start of the file. */
export interface GifExtension {
  readonly kind: 'extension';
  /** One of `gifLabel`, or any other byte. */
  readonly label: number;
  /** Offset of the introducer; the label follows and, except in comments, the size of the first sub-block. */
  readonly start: number;
  /** End of the last sub-block, including its zero. */
  readonly end: number;
}

/** An image with the last graphic control extension before it, as in browsers. */
export interface GifImageBlock {
  readonly kind: 'image';
  /** Offset of the image descriptor. */
  readonly start: number;
  /** Offset of the LZW code size, before the sub-blocks of the pixels. */
  readonly data: number;
  /** End of the last sub-block, including its zero. */
  readonly end: number;
  /** Offset of the graphic control extension. */
  readonly control: number | undefined;
}

/** End of the blocks; `junk`: bytes that libnsgif and browsers reject; `truncated`: the last block exceeds the file. */
export interface GifEnd {
  readonly kind: 'trailer' | 'end of file' | 'junk' | 'truncated';
  readonly start: number;
  /** Offset of a graphic control extension without an image. */
  readonly control: number | undefined;
  readonly image?: GifImageBlock | undefined;
}

/** Yields the blocks of a GIF like libnsgif, in linear time. Never throws. */
export function* iterateGifBlocks(
  gif: Uint8Array,
): Generator<GifExtension | GifImageBlock | GifEnd, void> {
  // Bytes past the end count as 0, so that the position still advances.
  const byte = (offset: number): number => gif[offset] ?? 0;
  let start = SCREEN_BYTES + colourTableBytes(byte(10));
  let control: number | undefined;
  let image: GifImageBlock | undefined;
  while (start < gif.length) {
    const code = byte(start);
    let end: number;
    if (code === gifBlock.extension) {
      const label = byte(start + 1);
      // libnsgif skips the first sub-block even if its size is 0, except in comments.
      end = skipSubBlocks(gif, start + (label === gifLabel.comment ? 2 : 3 + byte(start + 2)));
      if (end <= gif.length) yield { kind: 'extension', label, start, end };
      if (label === gifLabel.graphicControl) control = start;
    } else if (code === gifBlock.image) {
      const data = start + 10 + colourTableBytes(byte(start + 9));
      if (byte(data) >= MAX_CODE_BITS) return yield { kind: 'junk', start, control };
      end = skipSubBlocks(gif, data + 1);
      image = { kind: 'image', start, data, end, control };
      if (end <= gif.length) yield image;
      control = undefined;
    } else {
      const kind = code === gifBlock.trailer ? 'trailer' : 'junk';
      return yield { kind, start, control };
    }
    start = end;
  }
  if (start === gif.length) yield { kind: 'end of file', start, control };
  else yield { kind: 'truncated', start, control, image: image?.end === start ? image : undefined };
}

/** Length of a colour table by its packed field (GIF89a §18, §20). */
export function colourTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 0x07));
}

/** May return an offset past the end of the file. */
function skipSubBlocks(gif: Uint8Array, first: number): number {
  let position = first;
  for (;;) {
    const size = gif[position] ?? 0;
    position += size + 1;
    if (size === 0) return position;
  }
}
