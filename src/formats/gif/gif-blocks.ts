import { hasAscii } from '../byte-reader.ts';

/** Signature and logical screen descriptor. */
export const SCREEN_BYTES = 13;
const introducer = { extension: 0x21, image: 0x2c, trailer: 0x3b } as const;

/** Labels of the extensions that we interpret (GIF89a §23, §24, §26). */
export const gifLabel = { graphicControl: 0xf9, comment: 0xfe, application: 0xff } as const;

/** Maximum bits of a code (GIF89a appendix F); libnsgif rejects a root code size this large. */
export const MAX_CODE_BITS = 12;

/** Whether the bytes begin with `GIF8`, the magic that libvips checks for. */
export function isGif(bytes: Uint8Array): boolean {
  return hasAscii(bytes, 0, 'GIF8');
}

/** Receives the blocks of a GIF in order; all offsets are bytes from its start. */
export interface GifVisitor {
  /**
   * @param label one of `gifLabel`, or any other byte
   * @param start of the introducer; the label follows, and for all but comments the size of the first sub-block
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
 * End of a walk: the trailer; the end of the file, between two blocks; bytes that libnsgif and browsers do not accept
 * as a block or an image; or a block that does not end.
 */
export interface GifEnd {
  readonly kind: 'trailer' | 'end of file' | 'junk' | 'truncated';
  readonly position: number;
}

/**
 * Walks through the blocks of a GIF (GIF89a specification) as libnsgif does. Calls the visitor for each block that ends
 * within the file. Never throws; linear in the bytes.
 */
export function walkGifBlocks(gif: Uint8Array, { onExtension, onImage }: GifVisitor): GifEnd {
  // Bytes past the end count as 0: the position moves past the end all the same.
  const byte = (offset: number): number => gif[offset] ?? 0;
  let position = SCREEN_BYTES + colourTableBytes(byte(10));
  while (position < gif.length) {
    const start = position;
    const code = byte(start);
    if (code === introducer.extension) {
      const label = byte(start + 1);
      // libnsgif skips the first sub-block of all but comments, whatever its size, 0 included.
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

/** Returns the bytes of the colour table that a packed field announces (GIF89a §18, §20). */
export function colourTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 0x07));
}

/** Returns the offset after the zero that ends the sub-blocks; past the end of the file if the zero is missing. */
function skipSubBlocks(gif: Uint8Array, first: number): number {
  let position = first;
  for (;;) {
    const size = gif[position] ?? 0;
    position += size + 1;
    if (size === 0) return position;
  }
}
