import { createSeededRandom } from '../seeded-random.ts';
import type { Draw, DrawnApng, DrawnApngFrame, SampleKind } from './draw-apng.ts';

type Colour = readonly [red: number, green: number, blue: number, alpha: number];

const red: Colour = [255, 0, 0, 255];
const green: Colour = [0, 200, 60, 255];
const blue: Colour = [20, 40, 255, 255];
const glass: Colour = [255, 240, 0, 110];
const nothing: Colour = [0, 0, 0, 0];

/** One colour all over. */
const flat =
  (colour: readonly number[]): Draw =>
  () =>
    colour;

/** Alpha that grows from left to right, colours from top to bottom. */
const fade: Draw = (x, y) => [(x * 37) % 256, (y * 29) % 256, 90, (x * 21 + y * 3) % 256];

/** A region that is not in a corner, and a background that shows it. */
const inside = { left: 3, top: 2, widthPx: 5, heightPx: 4 } as const;
const canvas = { widthPx: 12, heightPx: 8 } as const;

/** Each disposal and each blend, with regions, over a picture that is half transparent. */
function everyMode(): DrawnApngFrame[] {
  const disposals = ['none', 'background', 'previous'] as const;
  const blends = ['source', 'over'] as const;
  const modes = disposals.flatMap((dispose) => blends.map((blend) => ({ dispose, blend })));
  const regions = modes.map((mode, index) => ({
    ...mode,
    left: index,
    top: index % 3,
    widthPx: 6,
    heightPx: 5,
    draw: ((x, y) => [(x * 40 + index * 50) % 256, y * 50, 128, (x * 50 + y * 10) % 256]) as Draw,
  }));
  return [{ draw: fade }, ...regions, ...regions.toReversed()];
}

/** A film of noise in one kind of samples. */
function noise(kind: SampleKind, channels: number): DrawnApngFrame[] {
  const random = createSeededRandom(JSON.stringify(kind));
  const most = kind.palette?.length ?? 2 ** kind.bits;
  // Of 16 bits, those that are as well told by 8.
  const sample = (): number =>
    kind.bits === 16 ? random.integer(256) * 257 : random.integer(most);
  const picture = (): Draw => {
    const samples = Array.from({ length: 12 * 8 }, () => Array.from({ length: channels }, sample));
    return (x, y) => samples[y * 12 + x] ?? [];
  };
  return [
    { draw: picture(), dispose: 'previous' },
    { ...inside, draw: picture(), blend: 'over' },
    { draw: picture(), blend: 'over', dispose: 'background' },
    { ...inside, draw: picture() },
  ];
}

const rainbow: SampleKind['palette'] = Array.from({ length: 16 }, (_, index) => [
  index * 16,
  255 - index * 16,
  (index * 91) % 256,
]);

/** By name, each with its channels. */
const kinds: Readonly<Record<string, readonly [kind: SampleKind, channels: number]>> = {
  '1-bit grey': [{ colour: 'grey', bits: 1 }, 1],
  '2-bit grey': [{ colour: 'grey', bits: 2 }, 1],
  '4-bit grey': [{ colour: 'grey', bits: 4 }, 1],
  '8-bit grey': [{ colour: 'grey', bits: 8 }, 1],
  '16-bit grey': [{ colour: 'grey', bits: 16 }, 1],
  'grey with a transparent one': [{ colour: 'grey', bits: 4, transparent: [0, 7] }, 1],
  '8-bit grey and alpha': [{ colour: 'grey alpha', bits: 8 }, 2],
  '16-bit grey and alpha': [{ colour: 'grey alpha', bits: 16 }, 2],
  '8-bit colours': [{ colour: 'rgb', bits: 8 }, 3],
  '16-bit colours': [{ colour: 'rgb', bits: 16 }, 3],
  '16-bit colours and alpha': [{ colour: 'rgba', bits: 16 }, 4],
  'a palette': [{ colour: 'palette', bits: 4, palette: rainbow }, 1],
  'a palette with alpha': [
    { colour: 'palette', bits: 4, palette: rainbow, transparent: [0, 40, 90, 128, 200, 254] },
    1,
  ],
  '1-bit palette': [
    { colour: 'palette', bits: 1, palette: rainbow.slice(3, 5), transparent: [100] },
    1,
  ],
};

/** Numerators and denominators. */
const delays = [
  [1, 10],
  [0, 7],
  [3, 0],
  [40, 1000],
  [65_535, 10],
  [7, 8],
] as const;

/** What is drawn on the canvas, by what it shows. */
const drawings: Readonly<Record<string, Omit<DrawnApng, keyof typeof canvas>>> = {
  'frames that fill the canvas': { frames: [red, green, blue].map((c) => ({ draw: flat(c) })) },
  'a source that is transparent takes away what is below': {
    frames: [{ draw: flat(red) }, { ...inside, draw: flat(nothing), blend: 'source' }],
  },
  'over leaves what is below where it is transparent': {
    frames: [{ draw: flat(red) }, { ...inside, draw: flat(nothing), blend: 'over' }],
  },
  'glass over glass': {
    frames: [flat(glass), fade, flat(glass), flat(glass)].map((draw) => ({ draw, blend: 'over' })),
  },
  'every disposal and blend': { frames: everyMode() },
  'previous on the first frame is background': {
    frames: [
      { draw: flat(red), dispose: 'previous' },
      { ...inside, draw: flat(blue), blend: 'over' },
    ],
  },
  'previous after previous': {
    frames: [
      { draw: flat(green) },
      { ...inside, draw: flat(red), dispose: 'previous' },
      { ...inside, left: 6, draw: flat(glass), blend: 'over', dispose: 'previous' },
      { ...inside, top: 4, draw: flat(blue), dispose: 'background' },
      { left: 0, widthPx: 1, heightPx: 1, draw: flat(red) },
    ],
  },
  'a default image that is none of the frames': {
    still: fade,
    frames: [{ ...inside, draw: flat(red) }, { draw: flat(blue) }],
  },
  'one frame that is not the default image': {
    still: flat(green),
    frames: [{ ...inside, draw: fade }],
  },
  'one frame that is the default image': { frames: [{ draw: fade }] },
  'image data in pieces': {
    pieces: 7,
    frames: [{ draw: fade }, { ...inside, draw: fade, blend: 'over' }],
  },
  'rows in passes': {
    isInterlaced: true,
    frames: [
      { draw: fade },
      { ...inside, draw: fade, blend: 'over' },
      { left: 11, top: 7, widthPx: 1, heightPx: 1, draw: flat(red) },
    ],
  },
  'delays of many fractions, three plays': {
    plays: 3,
    frames: delays.map((delay, at) => ({ delay, draw: flat([at * 40, 0, 90, 255]) })),
  },
  'equal frames': { frames: [red, red, red, blue, blue].map((c) => ({ draw: flat(c) })) },
  ...Object.fromEntries(
    Object.entries(kinds).flatMap(([name, [kind, channels]]) => [
      [name, { kind, frames: noise(kind, channels) }],
      [`${name} in passes`, { kind, isInterlaced: true, frames: noise(kind, channels) }],
    ]),
  ),
};

/** APNGs with one thing each that decoders differ in. */
export const apngDrawings = Object.entries(drawings).map(([name, drawn]) => ({
  name,
  drawn: { ...canvas, ...drawn },
}));
