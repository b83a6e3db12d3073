import { deflateSync, inflateSync } from 'node:zlib';
import type { SourceFormat } from '../../../src/contract/image-formats.ts';
import { ByteReader } from '../../../src/formats/byte-reader.ts';
import { iterateGifBlocks } from '../../../src/formats/gif/gif-blocks.ts';
import { readBoxes } from '../../../src/formats/heif/heif-boxes.ts';
import {
  hasSegment,
  iterateJpegSegments,
  jpegMarker,
} from '../../../src/formats/jpeg/jpeg-segments.ts';
import { hasValidCrc, iteratePngChunks } from '../../../src/formats/png/png-chunks.ts';
import { FIRST_CHUNK, iterateRiffChunks } from '../../../src/formats/webp/riff-chunks.ts';
import { join, jpegSegment, pngChunk, riffChunk, webpFile } from '../../formats/containers.ts';
import { box } from '../../support/images/heif-file.ts';
import { gifSubBlocks } from '../bombs/gif-bombs.ts';

/** Part of a file with its own length or checksum: a chunk, a segment, a block or a box. */
export interface Part {
  readonly tag: string;
  /** Content; for a part with children, the bytes before them. */
  readonly data: Buffer;
  readonly children?: readonly Part[];
}

/** Splits files of a format into parts, and joins parts with valid lengths and checksums. */
export interface PartCodec {
  /** @throws RangeError, or any other error, if the file is malformed */
  readonly parse: (file: Buffer) => Part[];
  readonly format: (parts: readonly Part[]) => Buffer;
}

const png: PartCodec = {
  parse: (file) =>
    [...iteratePngChunks(file)].map((chunk) => {
      if (!hasValidCrc(new ByteReader(file, 'PNG'), chunk)) throw new RangeError('CRC');
      return { tag: chunk.type, data: file.subarray(chunk.start, chunk.end) };
    }),
  format: (parts) =>
    join('\x89PNG\r\n\x1a\n', ...parts.map(({ tag, data }) => pngChunk(tag, data))),
};

/** The image data is one decompressed part, so mutations change filters and pixels. */
const pngPixels: PartCodec = {
  parse: (file) => {
    const parts = png.parse(file);
    const first = parts.findIndex(({ tag }) => tag === 'IDAT');
    const packed = parts.flatMap(({ tag, data }) => (tag === 'IDAT' ? [data] : []));
    const pixels = { tag: 'IDAT', data: inflateSync(Buffer.concat(packed)) };
    return parts.filter(({ tag }) => tag !== 'IDAT').toSpliced(first, 0, pixels);
  },
  format: (parts) => {
    const pack = ({ tag, data }: Part): Part =>
      tag === 'IDAT' ? { tag, data: deflateSync(data, { level: 1 }) } : { tag, data };
    return png.format(parts.map(pack));
  },
};

const SCAN = 'scan';

/** Segments by the second byte of their marker, in hexadecimal; entropy-coded data is separate. */
const jpeg: PartCodec = {
  parse: (file) => {
    const segments = [...iterateJpegSegments(file)];
    const count = segments.findIndex(({ code }) => code === jpegMarker.eoi);
    return segments.slice(0, count).flatMap(({ code, start, end }, index) => {
      if (!hasSegment(code)) throw new RangeError('no segment');
      const segment = { tag: code.toString(16), data: file.subarray(start + 2, end) };
      const scan = { tag: SCAN, data: file.subarray(end, segments[index + 1]?.at) };
      return code === jpegMarker.sos ? [segment, scan] : [segment];
    });
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

const FRAME_HEADER_BYTES = 16;

function parseRiff(file: Buffer, from: number, to: number): Part[] {
  return [...iterateRiffChunks(file, from, to)].map(({ fourCc: tag, start, end }) => {
    if (end > to) throw new RangeError('end');
    if (tag !== 'ANMF') return { tag, data: file.subarray(start, end) };
    const images = start + FRAME_HEADER_BYTES;
    return { tag, data: file.subarray(start, images), children: parseRiff(file, images, end) };
  });
}

function formatRiff({ tag, data, children = [] }: Part): Buffer {
  return riffChunk(tag, join(data, ...children.map(formatRiff)));
}

const webp: PartCodec = {
  parse: (file) => parseRiff(file, FIRST_CHUNK, file.length),
  format: (parts) => webpFile(...parts.map(formatRiff)),
};

function joinSubBlocks(blocks: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < blocks.length; at += 1 + blocks.readUInt8(at)) {
    parts.push(blocks.subarray(at + 1, at + 1 + blocks.readUInt8(at)));
  }
  return Buffer.concat(parts);
}

/** Parts: the screen with its palette, unchanged extensions, and each image's descriptor and data. */
const gif: PartCodec = {
  parse: (file) => {
    const parts: Part[] = [];
    let first = file.length;
    let end = '';
    for (const block of iterateGifBlocks(file)) {
      const { kind, start } = block;
      end = kind;
      first = Math.min(first, start);
      if (kind === 'extension') {
        parts.push({ tag: 'extension', data: file.subarray(start, block.end) });
      } else if (kind === 'image') {
        parts.push({ tag: 'image', data: file.subarray(start, block.data + 1) });
        parts.push({ tag: 'data', data: joinSubBlocks(file.subarray(block.data + 1, block.end)) });
      }
    }
    if (end !== 'trailer') throw new RangeError(end);
    return [{ tag: 'screen', data: file.subarray(0, first) }, ...parts];
  },
  format: (parts) =>
    join(...parts.map(({ tag, data }) => (tag === 'data' ? gifSubBlocks(data) : data)), 0x3b),
};

/** Number of bytes before the first child, for boxes with children. */
const parentBoxes: Readonly<Record<string, number>> = {
  ...{ meta: 4, iinf: 6, iref: 4, iprp: 0, ipco: 0, moov: 0, trak: 0, edts: 0, mdia: 0 },
  ...{ minf: 0, dinf: 0, stbl: 0, mvex: 0, moof: 0, traf: 0 },
};

function parseBoxes(file: Buffer, from: number, to: number): Part[] {
  const boxes = readBoxes(new ByteReader(file, 'AVIF'), from, to);
  return Array.from(boxes, ({ type: tag, start, end }) => {
    const before = parentBoxes[tag];
    if (before === undefined) return { tag, data: file.subarray(start, end) };
    const children = parseBoxes(file, start + before, end);
    return { tag, data: file.subarray(start, start + before), children };
  });
}

/** Boxes of a video; offsets of samples do not change. */
export const videoBoxes: PartCodec = {
  parse: (file) => parseBoxes(file, 0, file.length),
  format: formatBoxes,
};

/** Keeps the offsets in `iloc`: a free box makes up for a meta box that shrinks; one that grows makes them wrong. */
const avif: PartCodec = {
  parse: (file) => {
    const parts = parseBoxes(file, 0, file.length);
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

/** Codecs to try for a format. */
export const partCodecs: Readonly<Record<SourceFormat, readonly PartCodec[]>> = {
  png: [png, pngPixels],
  apng: [png, pngPixels],
  jpeg: [jpeg],
  webp: [webp],
  gif: [gif],
  avif: [avif],
  heic: [avif],
};
