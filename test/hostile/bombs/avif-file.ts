import { join, u32be } from '../../formats/containers.ts';

/** An item of an AVIF file. */
export interface AvifItem {
  /** `av01`, `grid`, `iovl`, … */
  readonly type: string;
  /** Bytes of the item; none for one that is made of others alone. */
  readonly data: Uint8Array;
  /** Property boxes, whole; each becomes one of the file's own. */
  readonly properties: readonly Uint8Array[];
  /** What the item refers to: type of the reference, and ids. */
  readonly references?: readonly (readonly [type: string, ids: readonly number[]])[];
}

export function u16be(value: number): Buffer {
  return u32be(value).subarray(2);
}

/** A box with its length (ISO/IEC 14496-12 §4.2). */
export function box(type: string, ...payload: readonly (number | string | Uint8Array)[]): Buffer {
  const body = join(...payload);
  return join(u32be(8 + body.length), type, body);
}

export function fullBox(
  type: string,
  version: number,
  flags: number,
  ...payload: readonly (number | string | Uint8Array)[]
): Buffer {
  return box(type, u32be(version * 2 ** 24 + flags), ...payload);
}

/** `ispe`: the size that an item is said to have. */
export function imageSize(widthPx: number, heightPx: number): Buffer {
  return fullBox('ispe', 0, 0, u32be(widthPx), u32be(heightPx));
}

/** `auxC` of an alpha plane. */
export const alphaProperty = fullBox('auxC', 0, 0, 'urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0');

/** What may be said otherwise than it is. */
export interface AvifLies {
  /** Boxes that stand in the meta box besides the usual ones. */
  readonly extraBoxes?: readonly Uint8Array[];
  /** Extents of the primary item instead of its own: offset and length in the file, 8 bytes each. */
  readonly extents?: readonly (readonly [offset: bigint, length: bigint])[];
}

/** Writes an AVIF (AV1 Image File Format 1.1) of these items, with ids from 1 on; 1 is the primary. */
export function createAvif(items: readonly AvifItem[], lies: AvifLies = {}): Buffer {
  const type = box('ftyp', 'avif', u32be(0), 'avifmif1miaf');
  // The offsets do not change how long the meta box is.
  const dataStart = type.length + formatMeta(items, 0, lies).length + 8;
  return join(
    type,
    formatMeta(items, dataStart, lies),
    box('mdat', ...items.map(({ data }) => data)),
  );
}

function formatMeta(items: readonly AvifItem[], dataStart: number, lies: AvifLies): Buffer {
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
    fullBox('pitm', 0, 0, u16be(1)),
    formatLocations(items, dataStart, lies),
    fullBox('iinf', 0, 0, u16be(items.length), ...entries),
    fullBox('iref', 0, 0, ...references),
    formatProperties(items),
    ...(lies.extraBoxes ?? []),
  );
}

/** `iloc` with offsets and lengths of 8 bytes. */
function formatLocations(items: readonly AvifItem[], dataStart: number, lies: AvifLies): Buffer {
  let offset = dataStart;
  const locations = items.map(({ data }, index) => {
    const own = [[BigInt(offset), BigInt(data.length)]] as const;
    offset += data.length;
    const extents = (index === 0 ? lies.extents : undefined) ?? own;
    const parts = extents.flatMap(([start, length]) => [u64be(start), u64be(length)]);
    return join(u16be(index + 1), u16be(0), u16be(0), u16be(extents.length), ...parts);
  });
  return fullBox('iloc', 1, 0, u16be(0x8800), u16be(items.length), ...locations);
}

function formatProperties(items: readonly AvifItem[]): Buffer {
  const pool = items.flatMap(({ properties }) => properties);
  let first = 1;
  const associations = items.map(({ properties }, index) => {
    const indices = properties.map((_, position) => u16be(first + position));
    first += properties.length;
    return join(u16be(index + 1), properties.length, ...indices);
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
