import { crc32 } from 'node:zlib';

export type Size = Readonly<Record<'widthPx' | 'heightPx', number>>;

/** Bytes as a number, Latin-1 text or a buffer. */
export type Part = number | string | Uint8Array;

export function join(...parts: readonly Part[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'number') return Buffer.of(part);
      return typeof part === 'string' ? Buffer.from(part, 'latin1') : part;
    }),
  );
}

/** Copies a file, and overwrites bytes from an offset on. */
export function put(file: Uint8Array, at: number, ...parts: readonly Part[]): Buffer {
  const copy = Buffer.from(file);
  join(...parts).copy(copy, at);
  return copy;
}

export function u16le(...values: readonly number[]): Buffer {
  return join(...values.flatMap((value) => [value & 0xff, value >>> 8]));
}

export function u24le(value: number): Buffer {
  return join(value & 0xff, (value >>> 8) & 0xff, value >>> 16);
}

export function u16be(value: number): Buffer {
  return u32be(value).subarray(2);
}

export function u32be(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function u32le(value: number): Buffer {
  return u32be(value).reverse();
}

/** A TIFF block with only the orientation, a short in IFD 0. */
export function tiffOrientation(value: number, order: 'II' | 'MM' = 'II'): Buffer {
  return order === 'II'
    ? join(order, u16le(42, 8, 0, 1, 0x0112, 3, 1, 0, value, 0, 0, 0))
    : join(order, u16le(42, 0, 8, 1, 0x0112, 3, 0, 1, value, 0, 0, 0).swap16());
}

/** A JPEG segment with its length; the code is the marker's second byte. */
export function jpegSegment(code: number, data: Uint8Array | string): Buffer {
  const length = data.length + 2;
  return join(0xff, code, length >>> 8, length & 0xff, data);
}

export function afterSoi(jpeg: Uint8Array, ...parts: readonly Uint8Array[]): Buffer {
  return join(jpeg.subarray(0, 2), ...parts, jpeg.subarray(2));
}

export function pngChunk(type: string, data: Uint8Array | string = ''): Buffer {
  const body = join(type, data);
  return join(u32be(data.length), body, u32be(crc32(body)));
}

export function withWrongCrc(png: Uint8Array, type: string): Buffer {
  const wrong = Buffer.from(png);
  const at = wrong.lastIndexOf(type, undefined, 'latin1');
  const crc = at + 4 + wrong.readUInt32BE(at - 4);
  wrong.writeUInt8(wrong.readUInt8(crc) ^ 1, crc);
  return wrong;
}

export function afterIhdr(png: Uint8Array, ...chunks: readonly Uint8Array[]): Buffer {
  return join(png.subarray(0, 33), ...chunks, png.subarray(33));
}

export function riffChunk(type: string, data: Uint8Array): Buffer {
  return join(type, u32le(data.length), data, data.length % 2 === 1 ? '\0' : '');
}

export function webpFile(...chunks: readonly Uint8Array[]): Buffer {
  const body = join('WEBP', ...chunks);
  return join('RIFF', u32le(body.length), body);
}

export function vp8x(flags: number, widthPx: number, heightPx: number): Buffer {
  return riffChunk('VP8X', join(flags, '\0\0\0', u24le(widthPx - 1), u24le(heightPx - 1)));
}

export function anmf(durationMs: number, ...chunks: readonly Uint8Array[]): Buffer {
  const fields = join(u24le(0), u24le(0), u24le(0), u24le(0), u24le(durationMs), 0);
  return riffChunk('ANMF', join(fields, ...chunks));
}

/** Header and logical screen of a GIF with a palette of two colours. */
export function gifScreen(widthPx: number, heightPx: number): Buffer {
  return join('GIF89a', u16le(widthPx, heightPx), 0x80, 0, 0, '\0\0\0\xff\xff\xff');
}

export function gifControl(delayCs: number): Buffer {
  return join(0x21, 0xf9, 4, 0, u16le(delayCs), 0, 0);
}

/** An image of one colour, with LZW data of one pixel, which libnsgif accepts for any size. */
export function gifImage(x: number, y: number, widthPx: number, heightPx: number): Buffer {
  return join(0x2c, u16le(x, y, widthPx, heightPx), 0, 2, 2, 0x44, 0x01, 0);
}

export function gifLoop(repeats: number, name = 'NETSCAPE2.0'): Buffer {
  return join(0x21, 0xff, 11, name, 3, 1, u16le(repeats), 0);
}
