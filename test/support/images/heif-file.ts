import { readFileSync } from 'node:fs';
import { join, type Part, u16be, u32be } from '../../formats/containers.ts';

/** An item of a file of ISO boxes. */
export interface HeifItem {
  /** `av01`, `hvc1`, `grid`, `iovl`, … */
  readonly type: string;
  /** Bytes of the item; none for one that is made of others alone. */
  readonly data: Uint8Array;
  /** Property boxes, whole; items that share a buffer share the property. */
  readonly properties: readonly Uint8Array[];
  /** What the item refers to: type of the reference, and ids. */
  readonly references?: readonly (readonly [type: string, ids: readonly number[]])[];
}

/** A box with its length (ISO/IEC 14496-12 §4.2). */
export function box(type: string, ...payload: readonly Part[]): Buffer {
  const body = join(...payload);
  return join(u32be(8 + body.length), type, body);
}

export function fullBox(
  type: string,
  version: number,
  flags: number,
  ...payload: readonly Part[]
): Buffer {
  return box(type, u32be(version * 2 ** 24 + flags), ...payload);
}

/** `ispe`: the size that an item is said to have. */
export function imageSize(widthPx: number, heightPx: number): Buffer {
  return fullBox('ispe', 0, 0, u32be(widthPx), u32be(heightPx));
}

/** `auxC` of an alpha plane. */
export const alphaProperty = fullBox('auxC', 0, 0, 'urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0');

/** Offset and length of extents that lie outside of any file, with sums that overflow among them. */
export const EXTENTS_OUTSIDE = [
  [2n ** 63n, 16n],
  [2n ** 64n - 16n, 32n],
  [16n, 2n ** 64n - 8n],
] as const;

/** What may be said otherwise than usual, or than it is. */
export interface HeifChoices {
  /** Brand of the file, and those that it is compatible with. */
  readonly brands?: readonly [major: string, compatible: string];
  /** Id of the primary item. */
  readonly primary?: number;
  /** Boxes that stand in the meta box besides the usual ones. */
  readonly extraBoxes?: readonly Uint8Array[];
  /** Extents of the primary item instead of its own: offset and length in the file, 8 bytes each. */
  readonly extents?: readonly (readonly [offset: bigint, length: bigint])[];
}

/** Writes an image file (ISO/IEC 23008-12) of these items, with ids from 1 on; an AVIF where nothing else is said. */
export function createHeif(items: readonly HeifItem[], choices: HeifChoices = {}): Buffer {
  const [major, compatible] = choices.brands ?? ['avif', 'avifmif1miaf'];
  const type = box('ftyp', major, u32be(0), compatible);
  // The offsets do not change how long the meta box is.
  const dataStart = type.length + formatMeta(items, 0, choices).length + 8;
  return join(
    type,
    formatMeta(items, dataStart, choices),
    box('mdat', ...items.map(({ data }) => data)),
  );
}

function formatMeta(items: readonly HeifItem[], dataStart: number, choices: HeifChoices): Buffer {
  const entries = items.map(({ type }, index) =>
    fullBox('infe', 2, 0, u16be(index + 1), u16be(0), type, 0),
  );
  const references = items.flatMap(({ references: own = [] }, index) =>
    own.map(([type, ids]) =>
      box(type, u16be(index + 1), u16be(ids.length), Buffer.concat(ids.map(u16be))),
    ),
  );
  return fullBox(
    'meta',
    0,
    0,
    fullBox('hdlr', 0, 0, u32be(0), 'pict', Buffer.alloc(13)),
    fullBox('pitm', 0, 0, u16be(choices.primary ?? 1)),
    formatLocations(items, dataStart, choices),
    fullBox('iinf', 0, 0, u16be(items.length), ...entries),
    fullBox('iref', 0, 0, ...references),
    formatProperties(items),
    ...(choices.extraBoxes ?? []),
  );
}

/** `iloc` with offsets and lengths of 8 bytes. */
function formatLocations(
  items: readonly HeifItem[],
  dataStart: number,
  choices: HeifChoices,
): Buffer {
  let offset = dataStart;
  const locations = items.map(({ data }, index) => {
    const own = [[BigInt(offset), BigInt(data.length)]] as const;
    offset += data.length;
    const extents = (index === 0 ? choices.extents : undefined) ?? own;
    const parts = extents.flatMap(([start, length]) => [u64be(start), u64be(length)]);
    return join(u16be(index + 1), u16be(0), u16be(0), u16be(extents.length), ...parts);
  });
  return fullBox('iloc', 1, 0, u16be(0x8800), u16be(items.length), ...locations);
}

function formatProperties(items: readonly HeifItem[]): Buffer {
  const pool = [...new Set(items.flatMap(({ properties }) => properties))];
  const places = new Map(pool.map((property, index) => [property, index + 1]));
  const associations = items.map(({ properties }, index) => {
    const indices = Uint16Array.from(properties, (property) => places.get(property) ?? 0);
    return join(u16be(index + 1), properties.length, Buffer.from(indices.buffer).swap16());
  });
  return box(
    'iprp',
    box('ipco', ...pool),
    fullBox('ipma', 0, 1, u32be(items.length), ...associations),
  );
}

function u64be(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}

/** The coded image of a file of one, and its properties; those of its size and colours can be left out. */
export function takeApart(file: Buffer, ...without: readonly string[]): HeifItem {
  const types = ['av1C', 'hvcC', 'ispe', 'pixi', 'colr'].filter((type) => !without.includes(type));
  const properties = types.flatMap((type) => {
    const at = file.indexOf(type, 0, 'latin1') - 4;
    return at < 0 ? [] : [file.subarray(at, at + file.readUInt32BE(at))];
  });
  return {
    type: file.includes('hvcC', 0, 'latin1') ? 'hvc1' : 'av01',
    data: file.subarray(file.indexOf('mdat', 0, 'latin1') + 4),
    properties,
  };
}

/** Reads a file of `fixtures/heic`. */
export const heicSample = (name: string) => readFileSync(`fixtures/heic/${name}`);

/** Brands of a HEIC. */
export const HEIC = { brands: ['heic', 'mif1heicmiaf'] } as const;

/** Turns to the left, in quarters. */
export const irot = (quarterTurns: number): Buffer => box('irot', quarterTurns);

/** Swaps top and bottom (0), or left and right (1). */
export const imir = (axis: number): Buffer => box('imir', axis);

/** Cuts a size out of the middle, moved by so many pixels. */
export const clap = (width: number, height: number, x = 0, y = 0): Buffer =>
  box('clap', ...[width, 1, height, 1, x, 1, y, 1].map((field) => u32be(field >>> 0)));

/** A sample whose item has more properties, or others. */
export function withProperties(name: string, ...more: readonly Uint8Array[]): HeifItem {
  const item = takeApart(heicSample(name));
  return { ...item, properties: [...item.properties, ...more] };
}

/** The coded image of a sample, saying that it has another size. */
export function saying(name: string, widthPx: number, heightPx = widthPx): HeifItem {
  const { properties, ...rest } = takeApart(heicSample(name), 'ispe');
  return { ...rest, properties: [imageSize(widthPx, heightPx), ...properties] };
}

/** An image grid of tiles that follow it. */
export function gridOf(
  rows: number,
  columns: number,
  [widthPx, heightPx]: readonly [number, number],
  tiles: readonly number[],
  ...more: readonly Uint8Array[]
): HeifItem {
  return {
    type: 'grid',
    data: join(0, 1, rows - 1, columns - 1, u32be(widthPx), u32be(heightPx)),
    properties: [imageSize(widthPx, heightPx), ...more],
    references: [['dimg', tiles]],
  };
}
