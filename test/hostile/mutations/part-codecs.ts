import { crc32, deflateSync, inflateSync } from 'node:zlib';
import type { SourceFormat } from '../../../src/contract/image-formats.ts';
import { join, jpegSegment, pngChunk, riffChunk, webpFile } from '../../formats/containers.ts';
import { box } from '../bombs/avif-file.ts';
import type { Part, PartCodec } from './part.ts';

const PNG_SIGNATURE_BYTES = 8;

function parsePng(file: Buffer): Part[] {
  const parts: Part[] = [];
  for (let at = PNG_SIGNATURE_BYTES; at < file.length; ) {
    const end = at + 8 + file.readUInt32BE(at);
    if (crc32(file.subarray(at + 4, end)) !== file.readUInt32BE(end)) throw new RangeError('CRC');
    parts.push({ tag: file.toString('latin1', at + 4, at + 8), data: file.subarray(at + 8, end) });
    at = end + 4;
  }
  return parts;
}

const png: PartCodec = {
  parse: parsePng,
  format: (parts) =>
    join('\x89PNG\r\n\x1a\n', ...parts.map(({ tag, data }) => pngChunk(tag, data))),
};

/** The image data are one part, unpacked: what is changed in it are filters and pixels. */
const pngPixels: PartCodec = {
  parse: (file) => {
    const parts = parsePng(file);
    const data = parts.filter(({ tag }) => tag === 'IDAT').map((part) => part.data);
    const first = parts.findIndex(({ tag }) => tag === 'IDAT');
    const others = parts.filter(({ tag }) => tag !== 'IDAT');
    const pixels = { tag: 'IDAT', data: inflateSync(Buffer.concat(data)) };
    return [...others.slice(0, first), pixels, ...others.slice(first)];
  },
  format: (parts) =>
    png.format(
      parts.map(({ tag, data }) => ({
        tag,
        data: tag === 'IDAT' ? deflateSync(data, { level: 1 }) : data,
      })),
    ),
};

const SCAN = 'scan';
const SOS = 0xda;
const EOI = 0xd9;

/** Segments by their marker's second byte in hexadecimal; entropy-coded data by themselves. */
const jpeg: PartCodec = {
  parse: (file) => {
    const parts: Part[] = [];
    for (let at = 2; ; ) {
      const code = file.readUInt8(at + 1);
      if (file.readUInt8(at) !== 0xff) throw new RangeError('no marker');
      if (code === EOI) return parts;
      const end = at + 2 + file.readUInt16BE(at + 2);
      parts.push({ tag: code.toString(16), data: file.subarray(at + 4, end) });
      at = end;
      if (code !== SOS) continue;
      while (file.readUInt8(at) !== 0xff || isWithinScan(file.readUInt8(at + 1))) at += 1;
      parts.push({ tag: SCAN, data: file.subarray(end, at) });
    }
  },
  format: (parts) =>
    join(
      '\xff\xd8',
      ...parts.map(({ tag, data }) =>
        tag === SCAN ? data : jpegSegment(Number.parseInt(tag, 16), data.subarray(0, 65_533)),
      ),
      '\xff\xd9',
    ),
};

function isWithinScan(code: number): boolean {
  return code === 0 || (code >= 0xd0 && code <= 0xd7);
}

const FRAME_HEADER_BYTES = 16;

function parseRiff(bytes: Buffer): Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes.toString('latin1', at, at + 4);
    const end = at + 8 + bytes.readUInt32LE(at + 4);
    if (end > bytes.length) throw new RangeError('end');
    const data = bytes.subarray(at + 8, end);
    parts.push(
      tag === 'ANMF'
        ? {
            tag,
            data: data.subarray(0, FRAME_HEADER_BYTES),
            children: parseRiff(data.subarray(FRAME_HEADER_BYTES)),
          }
        : { tag, data },
    );
    at = end + (end % 2);
  }
  return parts;
}

function formatRiff({ tag, data, children = [] }: Part): Buffer {
  return riffChunk(tag, join(data, ...children.map(formatRiff)));
}

const webp: PartCodec = {
  parse: (file) => parseRiff(file.subarray(12)),
  format: (parts) => webpFile(...parts.map(formatRiff)),
};

function tableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 7));
}

/** The screen with its palette; extensions as they are; images in two: descriptor and data. */
const gif: PartCodec = {
  parse: (file) => {
    let at = 13 + tableBytes(file.readUInt8(10));
    const parts: Part[] = [{ tag: 'screen', data: file.subarray(0, at) }];
    const skip = (): Buffer => {
      const blocks: Buffer[] = [];
      for (let size = file.readUInt8(at); size > 0; size = file.readUInt8(at)) {
        blocks.push(file.subarray(at + 1, at + 1 + size));
        at += 1 + size;
      }
      at += 1;
      return Buffer.concat(blocks);
    };
    for (; file.readUInt8(at) !== 0x3b; ) {
      const start = at;
      if (file.readUInt8(at) === 0x21) {
        at += 2;
        skip();
        parts.push({ tag: 'extension', data: file.subarray(start, at) });
      } else {
        at += 11 + tableBytes(file.readUInt8(at + 9));
        parts.push({ tag: 'image', data: file.subarray(start, at) });
        parts.push({ tag: 'data', data: skip() });
      }
    }
    return parts;
  },
  format: (parts) =>
    join(...parts.map(({ tag, data }) => (tag === 'data' ? subBlocks(data) : data)), 0x3b),
};

function subBlocks(data: Buffer): Buffer {
  const blocks = Array.from({ length: Math.ceil(data.length / 255) }, (_, index) => {
    const block = data.subarray(index * 255, (index + 1) * 255);
    return join(block.length, block);
  });
  return join(...blocks, 0);
}

/** Bytes before the first child, of boxes that have children. */
const parentBoxes = new Map([
  ['meta', 4],
  ['iinf', 6],
  ['iref', 4],
  ['iprp', 0],
  ['ipco', 0],
]);

function parseBoxes(bytes: Buffer): Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = bytes.readUInt32BE(at);
    const tag = bytes.toString('latin1', at + 4, at + 8);
    const end = size === 0 ? bytes.length : at + size;
    if (end < at + 8 || end > bytes.length) throw new RangeError('box');
    const data = bytes.subarray(at + 8, end);
    const before = parentBoxes.get(tag);
    parts.push(
      before === undefined
        ? { tag, data }
        : { tag, data: data.subarray(0, before), children: parseBoxes(data.subarray(before)) },
    );
    at = end;
  }
  return parts;
}

/**
 * Offsets in `iloc` are not touched: where the meta box stands before the data and has changed its
 * length, a free box makes good for what it has lost, and nothing for what it has gained.
 */
const avif: PartCodec = {
  parse: (file) => {
    const parts = parseBoxes(file);
    const bytes = formatBoxes(parts.filter(({ tag }) => tag === 'meta')).length;
    return parts.map((part) => (part.tag === 'mdat' ? { ...part, tag: `mdat/${bytes}` } : part));
  },
  format: (parts) => {
    const now = formatBoxes(parts.filter(({ tag }) => tag === 'meta')).length;
    return join(
      ...parts.flatMap((part) => {
        const [tag = '', before = '0'] = part.tag.split('/');
        const missing = Number(before) - now;
        const padding = missing >= 8 ? [box('free', Buffer.alloc(missing - 8))] : [];
        return [...padding, formatBoxes([{ ...part, tag }])];
      }),
    );
  },
};

function formatBoxes(parts: readonly Part[]): Buffer {
  return join(
    ...parts.map(({ tag, data, children = [] }) => box(tag, data, formatBoxes(children))),
  );
}

/** The ways to take apart a file of a format; all of them are tried. */
export const partCodecs: Readonly<Record<SourceFormat, readonly PartCodec[]>> = {
  png: [png, pngPixels],
  apng: [png, pngPixels],
  jpeg: [jpeg],
  webp: [webp],
  gif: [gif],
  avif: [avif],
};
