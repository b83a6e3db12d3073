/** EXIF and ICC blocks that declare more than they contain; bombs of all formats use them. */

/** EXIF directories (TIFF, little-endian) with cycles: libexif 0.6.26 traverses these 500 bytes for 30 s. */
export function cyclicExif(): Buffer {
  const count = 40;
  const [exifPointer, gpsPointer, long, first] = [0x8769, 0x8825, 4, 8];
  const block = Buffer.alloc(14 + 12 * count);
  block.write('II*\0\x08\0\0\0', 'latin1');
  block.writeUInt16LE(count, 8);
  for (let index = 0; index < count; index += 1) {
    const at = block.writeUInt16LE(index % 2 === 0 ? exifPointer : gpsPointer, 10 + 12 * index);
    block.writeUInt32LE(first, block.writeUInt32LE(1, block.writeUInt16LE(long, at)));
  }
  block.writeUInt32LE(first, 10 + 12 * count);
  return block;
}

/** An RGB ICC profile (ICC.1:2022 §7) with many tags of one curve. */
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
