import { box, fullBox } from '../../support/images/heif-file.ts';
import { join, type Part, u16be, u32be } from '../containers.ts';

/** A track of a movie; its samples have different lengths. */
export interface MovieTrack {
  readonly handler: string;
  readonly chunks: readonly (readonly Buffer[])[];
  /** Type of the table of sample sizes; `constant` is an `stsz` with one size for all. */
  readonly sizes?: 'stsz' | 'stz2' | 'constant';
  readonly offsets?: 'stco' | 'co64';
  readonly entry?: Buffer;
  readonly name?: string;
  readonly boxes?: readonly Buffer[];
}

export interface MovieOptions {
  /** `last`: after the media data. */
  readonly index?: 'first' | 'last';
  readonly version?: 0 | 1;
  readonly boxes?: readonly Buffer[];
  readonly fileBoxes?: readonly Buffer[];
  readonly dataHeader?: (payload: Buffer) => Buffer;
}

/** 2026-11-28, in seconds since 1904. */
export const TIME = 0xe7_3c_8a_80;

export const u64be = (value: number) =>
  join(u32be(Math.floor(value / 2 ** 32)), u32be(value % 2 ** 32));

/** A picture's sample entry, with the names of its encoder and vendor. */
export function videoEntry(vendor: string, encoder: string): Buffer {
  const name = join(encoder.length, encoder, Buffer.alloc(31 - encoder.length));
  const fields = [Buffer.alloc(6), u16be(1), u32be(0), vendor.padEnd(4), Buffer.alloc(8)];
  return box(
    'avc1',
    ...fields,
    u16be(240),
    u16be(160),
    Buffer.alloc(14),
    name,
    u16be(24),
    u16be(0),
  );
}

const headerOf = (type: string, version: 0 | 1, ...rest: readonly Part[]) => {
  const time = version === 0 ? u32be(TIME) : u64be(TIME);
  return fullBox(type, version, 0, time, time, ...rest);
};

export function createMovie(tracks: readonly MovieTrack[], options: MovieOptions = {}): Buffer {
  const { fileBoxes = [], dataHeader = (payload) => box('mdat', payload) } = options;
  const type = join(box('ftyp', 'mp42', u32be(0), 'mp42isom'), ...fileBoxes);
  const payload = Buffer.concat(tracks.flatMap(({ chunks }) => chunks.flat()));
  const data = dataHeader(payload);
  const headerBytes = data.length - payload.length;
  if (options.index === 'last') {
    return join(type, data, movieBox(tracks, type.length + headerBytes, options));
  }
  // The offsets do not change the length of the movie box.
  const start = type.length + movieBox(tracks, 0, options).length + headerBytes;
  return join(type, movieBox(tracks, start, options), data);
}

function movieBox(tracks: readonly MovieTrack[], start: number, options: MovieOptions): Buffer {
  const { version = 0, boxes = [] } = options;
  let offset = start;
  const trackBoxes = tracks.map((track, index) => {
    const box = trackBox(track, index + 1, offset, version);
    offset += Buffer.concat(track.chunks.flat()).length;
    return box;
  });
  const duration = version === 0 ? u32be(2000) : u64be(2000);
  const header = headerOf('mvhd', version, u32be(1000), duration, Buffer.alloc(80));
  return box('moov', header, ...trackBoxes, ...boxes);
}

function trackBox(track: MovieTrack, id: number, start: number, version: 0 | 1): Buffer {
  const { handler, chunks, sizes = 'stsz', offsets = 'stco', boxes = [], name } = track;
  const entry = track.entry ?? box('none', Buffer.alloc(6), u16be(1));
  const samples = chunks.flat();
  let offset = start;
  const places = chunks.map((chunk) => {
    const place = offset;
    offset += Buffer.concat(chunk).length;
    return offsets === 'stco' ? u32be(place) : u64be(place);
  });
  const runs = chunks.map((chunk, index) => join(u32be(index + 1), u32be(chunk.length), u32be(1)));
  const tables = [
    fullBox('stsd', 0, 0, u32be(1), entry),
    fullBox('stts', 0, 0, u32be(1), u32be(samples.length), u32be(40)),
    sizesBox(samples, sizes),
    fullBox('stsc', 0, 0, u32be(runs.length), ...runs),
    fullBox(offsets, 0, 0, u32be(places.length), ...places),
  ];
  const time = version === 0 ? u32be(2000) : u64be(2000);
  return box(
    'trak',
    headerOf('tkhd', version, u32be(id), u32be(0), time, Buffer.alloc(60)),
    box(
      'mdia',
      headerOf('mdhd', version, u32be(1000), time, u32be(0)),
      handlerBox('mhlr', handler, name ?? 'Core Media'),
      box(
        'minf',
        box('vmhd', Buffer.alloc(12)),
        handlerBox('dhlr', 'url ', 'Data'),
        box('stbl', ...tables),
      ),
    ),
    ...boxes,
  );
}

/** A handler with a manufacturer and a name, as in Apple's files. */
export function handlerBox(component: string, type: string, name: string): Buffer {
  return fullBox('hdlr', 0, 0, component, type, 'appl', Buffer.alloc(8), name.length, name);
}

function sizesBox(samples: readonly Buffer[], kind: NonNullable<MovieTrack['sizes']>): Buffer {
  const lengths = samples.map(({ length }) => length);
  const count = u32be(lengths.length);
  if (kind === 'constant') return fullBox('stsz', 0, 0, u32be(lengths[0] ?? 0), count);
  if (kind === 'stsz')
    return fullBox('stsz', 0, 0, u32be(0), count, Buffer.concat(lengths.map(u32be)));
  return fullBox('stz2', 0, 0, u32be(16), count, Buffer.concat(lengths.map(u16be)));
}
