import type { ByteReader, Extent } from './byte-reader.ts';

/** Payload of a box (ISO/IEC 14496-12). */
export interface Box extends Extent {
  readonly type: string;
  /** Offset of the header, of 8 or 16 bytes. */
  readonly headerStart: number;
  /** Whether the size is 0: the box ends with its parent. */
  readonly isOpen: boolean;
  /** Whether the box ends within its parent. */
  readonly fits: boolean;
}

/** Yields the boxes between two offsets, up to the first that does not fit. The caller limits their number. */
export function* iterateBoxes(
  reader: ByteReader,
  start: number,
  limit: number,
): Generator<Box, void> {
  for (let position = start; position < limit; ) {
    const box = readBox(reader, position, limit);
    yield box;
    if (!box.fits) return;
    position = box.end;
  }
}

export function readBox(reader: ByteReader, position: number, limit: number): Box {
  const missing = { type: '', headerStart: position, isOpen: false, fits: false };
  if (position + 8 > limit) return { ...missing, start: limit, end: limit };
  const size32 = reader.u32be(position);
  const type = reader.tag(position + 4);
  const isLong = size32 === 1 && position + 16 <= limit;
  const start = position + (isLong ? 16 : 8);
  const size = isLong ? reader.u64be(position + 8) : size32;
  const isOpen = size === 0 && !isLong;
  const end = isOpen ? limit : position + size;
  return { type, headerStart: position, start, end, isOpen, fits: start <= end && end <= limit };
}
