import { ByteReader, corruptMedia, tooLargeMedia } from '../../../formats/byte-reader.ts';
import { type HeifFile, readItem } from '../../../formats/heif/heif-file.ts';
import type { CodedPicture, Plane } from '../picture-to-rgb.ts';
import { listUnits, readHevcSets } from '../video/elementary-stream.ts';
import type { Libde265 } from './libde265.ts';

/** `DE265_ERROR_OUT_OF_MEMORY`. */
const NO_MEMORY = 7;

/** `DE265_DECODER_PARAM_SUPPRESS_FAULTY_PICTURES`. */
const SUPPRESS_FAULTY_PICTURES = 6;

/** Decoding takes one step to consume a unit, and another to return its picture. */
const MAX_STEPS_PER_UNIT = 4;

const MONOCHROME = 0;

/** @throws MediaError `UNPROCESSABLE_MEDIA` if a part cannot be decoded; `MEDIA_TOO_LARGE` if memory runs out */
export function decodeHevc(libde265: Libde265, heif: HeifFile, item: number): CodedPicture {
  const units = readHevcUnits(heif, item);
  const decoder = libde265._de265_new_decoder();
  const pointer = libde265._malloc(4);
  try {
    // Never return a partial picture.
    libde265._de265_set_parameter_bool(decoder, SUPPRESS_FAULTY_PICTURES, 1);
    for (const unit of units) pushUnit(libde265, decoder, unit);
    check(libde265._de265_flush_data(decoder));
    for (let steps = 0; steps < units.length * MAX_STEPS_PER_UNIT; steps += 1) {
      check(libde265._de265_decode(decoder, pointer));
      const hasMore = libde265.HEAP32[pointer >> 2] !== 0;
      const picture = libde265._de265_get_next_picture(decoder);
      if (picture !== 0) return readPicture(libde265, picture, pointer);
      if (!hasMore) break;
    }
    throw corruptMedia('libde265: no complete picture');
  } finally {
    libde265._free(pointer);
    libde265._de265_free_decoder(decoder);
  }
}

function pushUnit(libde265: Libde265, decoder: number, unit: Uint8Array): void {
  const bytes = libde265._malloc(unit.length);
  if (bytes === 0) throw tooLargeMedia('libde265: no memory for a NAL unit');
  libde265.HEAPU8.set(unit, bytes);
  check(libde265._de265_push_NAL(decoder, bytes, unit.length, 0, 0, 0));
  libde265._free(bytes);
}

function readPicture(libde265: Libde265, picture: number, pointer: number): CodedPicture {
  const isGrey = libde265._de265_get_chroma_format(picture) === MONOCHROME;
  const channels = isGrey ? [0] : [0, 1, 2];
  const [depth = 8, ...others] = channels.map((channel) =>
    libde265._de265_get_bits_per_pixel(picture, channel),
  );
  if (others.some((other) => other !== depth))
    throw corruptMedia('libde265: planes of different depths');
  return {
    planes: channels.map((channel) => readPlane(libde265, picture, channel, depth, pointer)),
    depth,
    matrix: libde265._de265_get_image_matrix_coefficients(picture),
    isFullRange: libde265._de265_get_image_full_range_flag(picture) !== 0,
  };
}

function readPlane(
  libde265: Libde265,
  picture: number,
  channel: number,
  depth: number,
  pointer: number,
): Plane {
  const widthPx = libde265._de265_get_image_width(picture, channel);
  const heightPx = libde265._de265_get_image_height(picture, channel);
  const start = libde265._de265_get_image_plane(picture, channel, pointer);
  const stride = libde265.HEAP32[pointer >> 2];
  const { HEAPU8 } = libde265;
  const sampleBytes = depth > 8 ? 2 : 1;
  const rowBytes = widthPx * sampleBytes;
  const bytes = new Uint8Array(rowBytes * heightPx);
  for (let row = 0; row < heightPx; row += 1) {
    const from = start + row * stride;
    bytes.set(HEAPU8.subarray(from, from + rowBytes), row * rowBytes);
  }
  // WebAssembly and all processors of Node are little-endian.
  const samples = depth > 8 ? new Uint16Array(bytes.buffer) : bytes;
  return { widthPx, heightPx, samples };
}

/** Throws for errors of libde265; codes from 1000 on are warnings. */
function check(code: number): void {
  if (code === NO_MEMORY) throw tooLargeMedia('libde265: no memory');
  if (code !== 0 && code < 1000) throw corruptMedia(`libde265: error ${code}`);
}

/** Returns the parameter sets from the `hvcC`, then the slices of a coded image. */
function readHevcUnits(heif: HeifFile, item: number): readonly Uint8Array[] {
  const { reader } = heif.meta;
  const configuration = heif.propertiesOf(item).find(({ type }) => type === 'hvcC');
  if (configuration === undefined) throw corruptMedia(`HEIF: image ${item} has no hvcC`);
  const hvcC = new ByteReader(reader.slice(configuration.start, configuration.end), 'hvcC');
  return listUnits(readHevcSets(hvcC), readItem(heif, item, Number.POSITIVE_INFINITY));
}
