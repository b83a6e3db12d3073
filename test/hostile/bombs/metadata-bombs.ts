/** EXIF and ICC blocks that ask for more than they hold; the formats' own bombs carry them. */

const ASCII = 2;
const LONG = 4;
const EXIF_POINTER = 0x8769;
const GPS_POINTER = 0x8825;
const MAKER_NOTE = 0x927c;

interface Entry {
  readonly tag: number;
  readonly type: number;
  readonly count: number;
  readonly value: number;
}

/** A little-endian TIFF block: one directory of these entries, followed by the directory at `next`. */
function tiff(entries: readonly Entry[], next: number, bytes = 0): Buffer {
  const block = Buffer.alloc(Math.max(bytes, 14 + 12 * entries.length), 0x41);
  block.write('II*\0\x08\0\0\0', 'latin1');
  block.writeUInt16LE(entries.length, 8);
  for (const [index, { tag, type, count, value }] of entries.entries()) {
    const at = 10 + 12 * index;
    block.writeUInt16LE(tag, at);
    block.writeUInt16LE(type, at + 2);
    block.writeUInt32LE(count, at + 4);
    block.writeUInt32LE(value, at + 8);
  }
  block.writeUInt32LE(next, 10 + 12 * entries.length);
  return block;
}

/** Directories that lead to themselves: 500 bytes that libexif 0.6.26 walks through for 30 s. */
export function exifInCircles(): Buffer {
  const pointers = Array.from({ length: 40 }, (_, index) => ({
    tag: index % 2 === 0 ? EXIF_POINTER : GPS_POINTER,
    type: LONG,
    count: 1,
    value: 8,
  }));
  return tiff(pointers, 8);
}

/** As many entries as fit in a fifth of a block, each of which has nearly all of it as its value. */
export function exifOfOverlaps(bytes: number): Buffer {
  const entries = Math.min(65_535, Math.floor(bytes / 60));
  return tiff(
    Array.from({ length: entries }, (_, index) => ({
      tag: index === 0 ? MAKER_NOTE : 0x010e + (index % 50),
      type: ASCII,
      count: bytes - 16,
      value: 8,
    })),
    0,
    bytes,
  );
}

/** Every count and offset as large as it can be. */
export function exifOfHugeCounts(): Buffer {
  return tiff(
    Array.from({ length: 200 }, (_, index) => ({
      tag: 0x0100 + index,
      type: index % 14,
      count: 0xffff_ffff,
      value: 0xffff_fff0,
    })),
    0xffff_ffff,
  );
}

/** An ICC profile (ICC.1:2022 §7) of RGB, with as many tags as said, all of them the same curve. */
export function iccOf(tags: number, bytes: number, curvePoints: number): Buffer {
  const profile = Buffer.alloc(bytes);
  const names = ['rTRC', 'gTRC', 'bTRC', 'rXYZ', 'gXYZ', 'bXYZ', 'wtpt', 'A2B0', 'B2A0', 'desc'];
  profile.writeUInt32BE(bytes, 0);
  profile.write('lcms', 4, 'latin1');
  profile.writeUInt32BE(0x0240_0000, 8);
  profile.write('mntrRGB XYZ ', 12, 'latin1');
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
