import type { SeededRandom } from '../../support/seeded-random.ts';

/** Boundary values of fields and of decoders' arithmetic. */
const EDGES = [
  0, 1, 2, 3, 7, 8, 0x0f, 0x10, 0x1f, 0x20, 0x3f, 0x40, 0x7f, 0x80, 0xfe, 0xff, 0x100, 0x1ff,
  0x3fff, 0x4000, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x1_0000, 0xff_ffff, 0x7fff_ffff, 0x8000_0000,
  0xffff_fffe, 0xffff_ffff,
] as const;

/** Most headers end before this offset. */
const HEAD_BYTES = 128;

/** Returns the offset of a change; half of all changes are in the header. */
function position(bytes: Buffer, random: SeededRandom): number {
  const end = random.integer(2) === 0 ? Math.min(HEAD_BYTES, bytes.length) : bytes.length;
  return random.integer(Math.max(1, end));
}

function edge(random: SeededRandom): Buffer {
  const number = Buffer.alloc(4);
  number.writeUInt32LE(random.pick(EDGES));
  const low = number.subarray(0, random.pick([1, 2, 3, 4]));
  return random.integer(2) === 0 ? low : low.reverse();
}

/** Changes bytes in one of many ways; adds some to an empty file. */
export function changeBytes(bytes: Buffer, random: SeededRandom): Buffer {
  if (bytes.length === 0) return random.bytes(random.integer(16));
  const at = position(bytes, random);
  const byte = bytes.readUInt8(at);
  const most = random.pick([1, 4, 16, 64, 1024, bytes.length]);
  const end = Math.min(bytes.length, at + 1 + random.integer(most));
  const part = bytes.subarray(at, end);
  /** Overwrites bytes without changing the length. */
  const overwrite = (by: Buffer): Buffer => {
    const changed = Buffer.from(bytes);
    by.copy(changed, at);
    return changed;
  };
  /** Inserts or removes bytes. */
  const put = (by: Buffer, until = at): Buffer =>
    Buffer.concat([bytes.subarray(0, at), by, bytes.subarray(until)]);
  const inPlace = [
    () => overwrite(Buffer.of(byte ^ (1 << random.integer(8)))),
    () => overwrite(random.bytes(1)),
    () => overwrite(edge(random)),
    () => overwrite(edge(random)),
    () => overwrite(Buffer.of((byte + random.pick([-2, -1, 1, 2])) & 0xff)),
    () => overwrite(Buffer.alloc(part.length, random.pick([0, 0x55, 0xff]))),
    () => overwrite(bytes.subarray(position(bytes, random)).subarray(0, part.length)),
  ];
  const resizing = [
    () => bytes.subarray(0, random.integer(bytes.length + 1)),
    () => put(Buffer.alloc(0), end),
    () => put(Buffer.alloc(part.length * random.pick([1, 1, 2, 50]), part)).subarray(0, 2 ** 20),
    () => put(random.bytes(1 + random.integer(64))),
  ];
  return random.pick(random.integer(4) === 0 ? resizing : inPlace)();
}

/** Joins the beginning of one file and the end of another. */
export function splice(one: Buffer, other: Buffer, random: SeededRandom): Buffer {
  const from = random.integer(2) === 0 ? position(other, random) : random.integer(other.length);
  return Buffer.concat([one.subarray(0, random.integer(one.length)), other.subarray(from)]);
}
