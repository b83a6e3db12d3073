import { hasAscii } from '../byte-reader.ts';

/** Signature and logical screen descriptor. */
export const SCREEN_BYTES = 13;
const introducer = { extension: 0x21, image: 0x2c, trailer: 0x3b } as const;

/** Labels of the extensions that mean something to anybody here (GIF89a §23, §24, §26). */
export const gifLabel = { graphicControl: 0xf9, comment: 0xfe, application: 0xff } as const;

/** Codes of a GIF have at most as many bits (GIF89a appendix F); libnsgif refuses roots of as many. */
export const MAX_CODE_BITS = 12;

/** True where the bytes begin with `GIF8`, the magic libvips asks for. */
export function isGif(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 0, 'GIF8');
}

/** Called for the blocks of a GIF, in their order; all offsets are bytes from its start. */
export interface GifVisitor {
  /**
   * @param label one of `gifLabel`, or any other byte
   * @param start of the introducer; the label and, if it is no comment, the size of the first
   *   sub-block follow
   * @param end of the last sub-block, its zero included
   */
  readonly onExtension?: (label: number, start: number, end: number) => void;
  /**
   * @param start of the image descriptor
   * @param data offset of the LZW code size, which the sub-blocks with the pixels follow
   * @param end of the last sub-block, its zero included
   */
  readonly onImage?: (start: number, data: number, end: number) => void;
}

/**
 * Where the walk ended: at the trailer; at the end of the file, between two blocks; at what is no
 * block or no image to libnsgif, as browsers and libnsgif do; or in a block that does not end.
 */
export interface GifEnd {
  readonly kind: 'trailer' | 'end of file' | 'junk' | 'truncated';
  readonly position: number;
}

/**
 * Walks through the blocks of a GIF (GIF89a specification) as libnsgif does, the decoder of libvips.
 * The visitor is called for each block that ends within the file. Never throws; linear in the bytes.
 */
export function walkGifBlocks(gif: Uint8Array, { onExtension, onImage }: GifVisitor): GifEnd {
  // What lies past the end counts as 0: it moves the position past the end all the same.
  const byte = (offset: number): number => gif[offset] ?? 0;
  let position = SCREEN_BYTES + colourTableBytes(byte(10));
  while (position < gif.length) {
    const start = position;
    const code = byte(start);
    if (code === introducer.extension) {
      const label = byte(start + 1);
      // Of all but a comment libnsgif skips the first sub-block whatever its size, 0 included.
      const first = start + (label === gifLabel.comment ? 2 : 3 + byte(start + 2));
      position = skipSubBlocks(gif, first);
      if (position <= gif.length) onExtension?.(label, start, position);
    } else if (code === introducer.image) {
      const data = start + 10 + colourTableBytes(byte(start + 9));
      if (byte(data) >= MAX_CODE_BITS) return { kind: 'junk', position };
      position = skipSubBlocks(gif, data + 1);
      if (position <= gif.length) onImage?.(start, data, position);
    } else {
      return { kind: code === introducer.trailer ? 'trailer' : 'junk', position };
    }
  }
  return { kind: position === gif.length ? 'end of file' : 'truncated', position };
}

/** Bytes of the colour table that a packed field announces (GIF89a §18, §20). */
export function colourTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 0x07));
}

/** Offset after the zero that ends the sub-blocks; past the end of the file where there is none. */
function skipSubBlocks(gif: Uint8Array, first: number): number {
  let position = first;
  for (;;) {
    const size = gif[position] ?? 0;
    position += size + 1;
    if (size === 0) return position;
  }
}
