import { readFileSync } from 'node:fs';
import { join, type Part, u16be, u32be } from '../../formats/containers.ts';

/** An item of a HEIF file. */
export interface HeifItem {
  /** `av01`, `hvc1`, `grid`, `iovl`, … */
  readonly type: string;
  /** Bytes of the item; empty for a derived image. */
  readonly data: Uint8Array;
  /** Property boxes; items that share a buffer share the property. */
  readonly properties: readonly Uint8Array[];
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

/** `ispe`: the declared size of an item. */
export function imageSize(widthPx: number, heightPx: number): Buffer {
  return fullBox('ispe', 0, 0, u32be(widthPx), u32be(heightPx));
}

/** `auxC` of an alpha plane. */
export const alphaProperty = fullBox('auxC', 0, 0, 'urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0');

/** Offset and length of extents outside of any file; some sums overflow. */
export const EXTENTS_OUTSIDE = [
  [2n ** 63n, 16n],
  [2n ** 64n - 16n, 32n],
  [16n, 2n ** 64n - 8n],
] as const;

/** Deviations from a usual or correct file. */
export interface HeifChoices {
  readonly brands?: readonly [major: string, compatible: string];
  readonly primary?: number;
  /** Additional boxes in the meta box. */
  readonly extraBoxes?: readonly Uint8Array[];
  /** Replaces the extents of the primary item. */
  readonly extents?: readonly (readonly [offset: bigint, length: bigint])[];
}

/** Creates an image file (ISO/IEC 23008-12) of items with ids from 1, by default an AVIF. */
export function createHeif(items: readonly HeifItem[], choices: HeifChoices = {}): Buffer {
  const [major, compatible] = choices.brands ?? ['avif', 'avifmif1miaf'];
  const type = box('ftyp', major, u32be(0), compatible);
  // The length of the meta box does not depend on the offsets.
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

/** Extracts the coded image of a file with one item, except some properties. */
export function extractImage(file: Buffer, ...without: readonly string[]): HeifItem {
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

export const heicSample = (name: string) => readFileSync(`fixtures/heic/${name}`);

/** Brands of a HEIC. */
export const HEIC = { brands: ['heic', 'mif1heicmiaf'] } as const;

/** Rotates counterclockwise, in quarter turns. */
export const irot = (quarterTurns: number): Buffer => box('irot', quarterTurns);

/** Flips vertically (0) or horizontally (1). */
export const imir = (axis: number): Buffer => box('imir', axis);

/** Crops to a size around the centre, which is moved by `x` and `y` pixels. */
export const clap = (width: number, height: number, x = 0, y = 0): Buffer =>
  box('clap', ...[width, 1, height, 1, x, 1, y, 1].map((field) => u32be(field >>> 0)));

/** Returns the item of a sample with additional properties. */
export function withProperties(name: string, ...more: readonly Uint8Array[]): HeifItem {
  const item = extractImage(heicSample(name));
  return { ...item, properties: [...item.properties, ...more] };
}

/** Returns the coded image of a sample with another declared size. */
export function withDeclaredSize(name: string, widthPx: number, heightPx = widthPx): HeifItem {
  const { properties, ...rest } = extractImage(heicSample(name), 'ispe');
  return { ...rest, properties: [imageSize(widthPx, heightPx), ...properties] };
}

/** Returns an image grid of other items. */
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
