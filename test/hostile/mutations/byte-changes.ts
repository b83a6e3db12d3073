import type { SeededRandom } from '../../support/seeded-random.ts';

/** Numbers at the edges of what fields hold and of what decoders reckon with. */
const EDGES = [
  0, 1, 2, 3, 7, 8, 0x0f, 0x10, 0x1f, 0x20, 0x3f, 0x40, 0x7f, 0x80, 0xfe, 0xff, 0x100, 0x1ff,
  0x3fff, 0x4000, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x1_0000, 0xff_ffff, 0x7fff_ffff, 0x8000_0000,
  0xffff_fffe, 0xffff_ffff,
] as const;

/** Most headers are over by here. */
const HEAD_BYTES = 128;

type Change = (bytes: Buffer, random: SeededRandom) => Buffer;

/** Where something is changed: as often in the head as anywhere. */
function position(bytes: Buffer, random: SeededRandom): number {
  const end = random.integer(2) === 0 ? Math.min(HEAD_BYTES, bytes.length) : bytes.length;
  return random.integer(Math.max(1, end));
}

function range(bytes: Buffer, random: SeededRandom): readonly [start: number, end: number] {
  const start = position(bytes, random);
  const most = random.pick([1, 4, 16, 64, 1024, bytes.length]);
  return [start, Math.min(bytes.length, start + 1 + random.integer(most))];
}

/** Writes over what is there, as far as it goes. */
function overwrite(bytes: Buffer, at: number, by: Buffer): Buffer {
  const changed = Buffer.from(bytes);
  by.copy(changed, at);
  return changed;
}

function edge(random: SeededRandom): Buffer {
  const width = random.pick([1, 2, 3, 4]);
  const number = Buffer.alloc(4);
  number.writeUInt32LE(random.pick(EDGES));
  const low = number.subarray(0, width);
  return random.integer(2) === 0 ? low : low.reverse();
}

/** Changes that leave the length as it is. */
const inPlace: readonly Change[] = [
  (bytes, random) => {
    const at = position(bytes, random);
    return overwrite(bytes, at, Buffer.of((bytes[at] ?? 0) ^ (1 << random.integer(8))));
  },
  (bytes, random) => overwrite(bytes, position(bytes, random), random.bytes(1)),
  (bytes, random) => overwrite(bytes, position(bytes, random), edge(random)),
  (bytes, random) => overwrite(bytes, position(bytes, random), edge(random)),
  (bytes, random) => {
    const at = position(bytes, random);
    const near = (bytes[at] ?? 0) + random.pick([-2, -1, 1, 2]);
    return overwrite(bytes, at, Buffer.of(near & 0xff));
  },
  (bytes, random) => {
    const [start, end] = range(bytes, random);
    return overwrite(bytes, start, Buffer.alloc(end - start, random.pick([0, 0x55, 0xff])));
  },
  (bytes, random) => {
    const [start, end] = range(bytes, random);
    return overwrite(bytes, position(bytes, random), bytes.subarray(start, end));
  },
];

/** Changes that move what follows. */
const moving: readonly Change[] = [
  (bytes, random) => bytes.subarray(0, random.integer(bytes.length + 1)),
  (bytes, random) => {
    const [start, end] = range(bytes, random);
    return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]);
  },
  (bytes, random) => {
    const [start, end] = range(bytes, random);
    const more = Array.from({ length: random.pick([1, 1, 2, 50]) }, () =>
      bytes.subarray(start, end),
    );
    const longer = Buffer.concat([bytes.subarray(0, end), ...more, bytes.subarray(end)]);
    return longer.subarray(0, 2 ** 20);
  },
  (bytes, random) => {
    const at = position(bytes, random);
    const more = random.bytes(1 + random.integer(64));
    return Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)]);
  },
];

/** Changes bytes in one of many ways; where there are none, adds some. */
export function changeBytes(bytes: Buffer, random: SeededRandom): Buffer {
  if (bytes.length === 0) return random.bytes(random.integer(16));
  const change = random.pick(random.integer(4) === 0 ? moving : inPlace);
  return change(bytes, random);
}

/** The beginning of one file and the end of another. */
export function splice(one: Buffer, other: Buffer, random: SeededRandom): Buffer {
  const from = random.integer(2) === 0 ? position(other, random) : random.integer(other.length);
  return Buffer.concat([one.subarray(0, random.integer(one.length)), other.subarray(from)]);
}
