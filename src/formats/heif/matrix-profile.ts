/** Transfer curve from light to samples: sRGB's own, or a gamma exponent. */
export type TransferCurve = 'srgb' | number;

type Vector = readonly [number, number, number];

/** XYZ of red, green and blue at full strength, adapted to D50 as in a profile (ICC.1:2010 Annex E). */
export type RgbColumns = readonly [red: Vector, green: Vector, blue: Vector];

/** White point of profiles (ICC.1:2010 §7.2.16). */
const D50: Vector = [0.9642, 1, 0.8249];

/** Formats an ICC profile of an RGB space, version 4 (ICC.1:2010). */
export function formatMatrixProfile([red, green, blue]: RgbColumns, curve: TransferCurve): Buffer {
  return formatProfile({
    desc: formatText('RGB'),
    cprt: formatText('CC0'),
    wtpt: formatXyz(D50),
    rXYZ: formatXyz(red),
    gXYZ: formatXyz(green),
    bXYZ: formatXyz(blue),
    rTRC: formatCurve(curve),
    gTRC: formatCurve(curve),
    bTRC: formatCurve(curve),
  });
}

/** Formats an s15Fixed16Number (§4.6). */
function formatFixed(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(Math.round(value * 0x1_0000));
  return bytes;
}

function formatXyz(colour: Vector): Buffer {
  return Buffer.concat([Buffer.from('XYZ \0\0\0\0'), ...colour.map(formatFixed)]);
}

/** Formats `para`: a power (type 0), or sRGB's curve (type 3, IEC 61966-2-1). */
function formatCurve(curve: TransferCurve): Buffer {
  const [type, ...values] =
    curve === 'srgb' ? [3, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045] : [0, curve];
  const head = Buffer.from(`para\0\0\0\0\0${String.fromCharCode(type ?? 0)}\0\0`, 'latin1');
  return Buffer.concat([head, ...values.map(formatFixed)]);
}

/** Formats an `mluc` of one record, in English. */
function formatText(text: string): Buffer {
  const utf16 = Buffer.from(text, 'utf16le').swap16();
  const head = Buffer.from('mluc\0\0\0\0\0\0\0\x01\0\0\0\x0cenUS\0\0\0\0\0\0\0\x1c', 'latin1');
  head.writeUInt32BE(utf16.length, 20);
  return Buffer.concat([head, utf16]);
}

/** Formats the header (§7.2), the table of tags, and the tags. */
function formatProfile(tags: Readonly<Record<string, Buffer>>): Buffer {
  const entries = Object.entries(tags);
  const table = Buffer.alloc(4 + 12 * entries.length);
  table.writeUInt32BE(entries.length);
  const data: Buffer[] = [];
  let offset = 128 + table.length;
  for (const [index, [name, tag]] of entries.entries()) {
    table.write(name, 4 + 12 * index, 'latin1');
    table.writeUInt32BE(offset, 8 + 12 * index);
    table.writeUInt32BE(tag.length, 12 + 12 * index);
    const padded = Buffer.alloc(Math.ceil(tag.length / 4) * 4);
    tag.copy(padded);
    data.push(padded);
    offset += padded.length;
  }
  const header = Buffer.alloc(128);
  header.writeUInt32BE(offset, 0);
  header.write('\x04\x30\0\0mntrRGB XYZ ', 8, 'latin1');
  header.write('acsp', 36, 'latin1');
  Buffer.concat(D50.map(formatFixed)).copy(header, 68);
  return Buffer.concat([header, table, ...data]);
}
