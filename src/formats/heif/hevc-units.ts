import { corruptMedia } from '../byte-reader.ts';
import { BoxCursor } from './heif-boxes.ts';
import { type HeifFile, readItem } from './heif-file.ts';

/** Far beyond real files, which have a handful of parameter sets and some hundred slices. */
const MAX_UNITS = 20_000;

/**
 * Returns the NAL units of a coded image in decoding order: parameter sets from its `hvcC` (ISO/IEC 14496-15 §8.3.2.1),
 * then the slices in its data.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` if a unit leaves its box or the data
 */
export function readHevcUnits(heif: HeifFile, item: number): readonly Uint8Array[] {
  const configuration = heif.propertiesOf(item).find(({ type }) => type === 'hvcC');
  if (configuration === undefined) throw corruptMedia(`HEIF: image ${item} has no hvcC`);
  const cursor = new BoxCursor(heif.meta.reader, configuration);
  const units: Uint8Array[] = [];
  const add = (unit: Uint8Array): void => {
    if (units.length === MAX_UNITS) throw corruptMedia(`HEIF: more than ${MAX_UNITS} NAL units`);
    units.push(unit);
  };
  cursor.skip(21);
  const lengthBytes = (cursor.uint(1) & 3) + 1;
  for (let arrays = cursor.uint(1); arrays > 0; arrays -= 1) {
    cursor.skip(1);
    for (let count = cursor.uint(2); count > 0; count -= 1) add(cursor.bytes(cursor.uint(2)));
  }
  const data = readItem(heif, item, Number.POSITIVE_INFINITY);
  for (let position = 0; position < data.length; ) {
    const start = position + lengthBytes;
    const end = start <= data.length ? start + data.readUIntBE(position, lengthBytes) : start;
    if (end > data.length) throw corruptMedia(`HEIF: a NAL unit of image ${item} is cut off`);
    add(data.subarray(start, end));
    position = end;
  }
  return units;
}
