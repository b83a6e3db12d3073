/** EXIF and ICC blocks that ask for more than they hold; the formats' own bombs carry them. */

const ASCII = 2;
const LONG = 4;
const EXIF_POINTER = 0x8769;
const GPS_POINTER = 0x8825;
const MAKER_NOTE = 0x927c;

type Entry = readonly [tag: number, type: number, count: number, value: number];

/** A little-endian TIFF block: one directory of so many entries, followed by the directory at `next`. */
function tiff(count: number, next: number, entryAt: (index: number) => Entry, bytes = 0): Buffer {
  const block = Buffer.alloc(Math.max(bytes, 14 + 12 * count), 0x41);
  block.write('II*\0\x08\0\0\0', 'latin1');
  block.writeUInt16LE(count, 8);
  for (let index = 0; index < count; index += 1) {
    const [tag, type, values, value] = entryAt(index);
    const at = block.writeUInt16LE(type, block.writeUInt16LE(tag, 10 + 12 * index));
    block.writeUInt32LE(value, block.writeUInt32LE(values, at));
  }
  block.writeUInt32LE(next, 10 + 12 * count);
  return block;
}

/** Directories that lead to themselves: 500 bytes that libexif 0.6.26 walks through for 30 s. */
export const exifInCircles = (): Buffer =>
  tiff(40, 8, (index) => [index % 2 === 0 ? EXIF_POINTER : GPS_POINTER, LONG, 1, 8]);

/** As many entries as fit in a fifth of a block, each of which has nearly all of it as its value. */
export function exifOfOverlaps(bytes: number): Buffer {
  const tagAt = (index: number): number => (index === 0 ? MAKER_NOTE : 0x010e + (index % 50));
  const count = Math.min(65_535, Math.floor(bytes / 60));
  return tiff(count, 0, (index) => [tagAt(index), ASCII, bytes - 16, 8], bytes);
}

/** Every count and offset as large as it can be. */
export const exifOfHugeCounts = (): Buffer =>
  tiff(200, 0xffff_ffff, (index) => [0x0100 + index, index % 14, 0xffff_ffff, 0xffff_fff0]);

/** An ICC profile (ICC.1:2022 §7) of RGB, with as many tags as said, all of them the same curve. */
export function iccOf(tags: number, bytes: number, curvePoints: number): Buffer {
  const profile = Buffer.alloc(bytes);
  const names = ['rTRC', 'gTRC', 'bTRC', 'rXYZ', 'gXYZ', 'bXYZ', 'wtpt', 'A2B0', 'B2A0', 'desc'];
  profile.writeUInt32BE(bytes, 0);
  profile.write('lcms\x02\x40\0\0mntrRGB XYZ ', 4, 'latin1');
  profile.write('acsp', 36, 'latin1');
  profile.writeUInt32BE(tags, 128);
  const held = Math.min(tags, Math.floor((bytes - 200) / 24));
  const curve = 132 + 12 * held;
  for (let index = 0; index < held; index += 1) {
    profile.write(names[index % names.length] ?? '', 132 + 12 * index, 'latin1');
    profile.writeUInt32BE(curve, 136 + 12 * index);
    profile.writeUInt32BE(bytes - curve, 140 + 12 * index);
  }
  profile.write('curv', curve, 'latin1');
  profile.writeUInt32BE(curvePoints, curve + 8);
  return profile;
}
