/** How light becomes a sample: by sRGB's own curve, or a power of so much. */
export type TransferCurve = 'srgb' | number;

type Vector = readonly [number, number, number];

/** The white of all our code points, and that of profiles (CIE 15, ICC.1:2010 §7.2.16). */
const D65: Vector = [0.3127 / 0.329, 1, (1 - 0.3127 - 0.329) / 0.329];
const D50: Vector = [0.9642, 1, 0.8249];

/** Cone responses of the Bradford adaptation (ICC.1:2010 Annex E). */
const BRADFORD: readonly Vector[] = [
  [0.8951, 0.2664, -0.1614],
  [-0.7502, 1.7135, 0.0367],
  [0.0389, -0.0685, 1.0296],
];

/**
 * Makes an ICC profile of three primaries in front of D65, as version 4 of the format has it (ICC.1:2010).
 *
 * @param primaries CIE xy of red, green and blue
 */
export function formatMatrixProfile(
  primaries: readonly (readonly [x: number, y: number])[],
  curve: TransferCurve,
): Buffer {
  const columns = primaries.map(([x, y]): Vector => [x / y, 1, (1 - x - y) / y]);
  // Together, at full strength, they are white.
  const strengths = solve(columns, D65);
  const adapted = columns.map((column, index) => adapt(scale(column, strengths[index] ?? 0)));
  const [red = D50, green = D50, blue = D50] = adapted;
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

/** Moves a colour from D65 to D50. */
function adapt(colour: Vector): Vector {
  const cones = (of: Vector): Vector => multiply(BRADFORD, of);
  const [from, to, own] = [cones(D65), cones(D50), cones(colour)];
  const moved: Vector = [
    (own[0] * to[0]) / from[0],
    (own[1] * to[1]) / from[1],
    (own[2] * to[2]) / from[2],
  ];
  // Cones of the three unit vectors are the columns of the matrix.
  return solve([cones([1, 0, 0]), cones([0, 1, 0]), cones([0, 0, 1])], moved);
}

function scale([x, y, z]: Vector, factor: number): Vector {
  return [x * factor, y * factor, z * factor];
}

function multiply(rows: readonly Vector[], [x, y, z]: Vector): Vector {
  const [a = 0, b = 0, c = 0] = rows.map((row) => row[0] * x + row[1] * y + row[2] * z);
  return [a, b, c];
}

/** How much of each of three columns makes a sum (Cramer's rule). */
function solve(columns: readonly Vector[], sum: Vector): Vector {
  const [a = D50, b = D50, c = D50] = columns;
  const whole = determinant(a, b, c);
  return [
    determinant(sum, b, c) / whole,
    determinant(a, sum, c) / whole,
    determinant(a, b, sum) / whole,
  ];
}

function determinant(a: Vector, b: Vector, c: Vector): number {
  return (
    a[0] * (b[1] * c[2] - b[2] * c[1]) -
    b[0] * (a[1] * c[2] - a[2] * c[1]) +
    c[0] * (a[1] * b[2] - a[2] * b[1])
  );
}

/** s15Fixed16Number (§4.6). */
function formatFixed(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(Math.round(value * 0x1_0000));
  return bytes;
}

function formatXyz(colour: Vector): Buffer {
  return Buffer.concat([Buffer.from('XYZ \0\0\0\0'), ...colour.map(formatFixed)]);
}

/** `para`: a power (type 0), or sRGB's (type 3, IEC 61966-2-1). */
function formatCurve(curve: TransferCurve): Buffer {
  const [type, ...values] =
    curve === 'srgb' ? [3, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045] : [0, curve];
  const head = Buffer.from(`para\0\0\0\0\0${String.fromCharCode(type ?? 0)}\0\0`, 'latin1');
  return Buffer.concat([head, ...values.map(formatFixed)]);
}

/** `mluc` of one record, in English. */
function formatText(text: string): Buffer {
  const utf16 = Buffer.from(text, 'utf16le').swap16();
  const head = Buffer.from('mluc\0\0\0\0\0\0\0\x01\0\0\0\x0cenUS\0\0\0\0\0\0\0\x1c', 'latin1');
  head.writeUInt32BE(utf16.length, 20);
  return Buffer.concat([head, utf16]);
}

/** Header (§7.2), table of tags, and what they point to. */
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
