import { createSeededRandom } from '../seeded-random.ts';
import type { Draw, DrawnApng, DrawnApngFrame, SampleKind } from './draw-apng.ts';

/** One colour all over. */
const flat =
  (...colour: readonly number[]): Draw =>
  () =>
    colour;

const red = flat(255, 0, 0, 255);
const green = flat(0, 200, 60, 255);
const blue = flat(20, 40, 255, 255);
const glass = flat(255, 240, 0, 110);
const nothing = flat(0, 0, 0, 0);
/** Alpha that grows from left to right, colours from top to bottom. */
const fade: Draw = (x, y) => [(x * 37) % 256, (y * 29) % 256, 90, (x * 21 + y * 3) % 256];

/** A region that is not in a corner, and a background that shows it. */
const inside = { left: 3, top: 2, widthPx: 5, heightPx: 4 } as const;
const canvas = { widthPx: 12, heightPx: 8 } as const;
const corner = { left: 11, top: 7, widthPx: 1, heightPx: 1, draw: red } as const;

/** Each disposal and each blend, with regions, over a picture that is half transparent. */
function everyMode(): DrawnApngFrame[] {
  const disposals = ['none', 'background', 'previous'] as const;
  const modes = disposals.flatMap((dispose) => [
    { dispose, blend: 'source' as const },
    { dispose, blend: 'over' as const },
  ]);
  const regions = modes.map(
    (mode, at): DrawnApngFrame => ({
      ...{ ...mode, left: at, top: at % 3, widthPx: 6, heightPx: 5 },
      draw: (x, y) => [(x * 40 + at * 50) % 256, y * 50, 128, (x * 50 + y * 10) % 256],
    }),
  );
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

const palette: SampleKind['palette'] = Array.from({ length: 16 }, (_, index) => [
  ...([index * 16, 255 - index * 16, (index * 91) % 256] as const),
]);

/** By name, each with its channels: what a frame needs besides its own data, and the depths that are told apart. */
const kinds: Readonly<Record<string, readonly [channels: number, kind: SampleKind]>> = {
  'grey with a transparent one': [1, { colour: 'grey', bits: 4, transparent: [0, 7] }],
  '16-bit colours': [3, { colour: 'rgb', bits: 16 }],
  'a palette with alpha': [
    1,
    { colour: 'palette', bits: 4, palette, transparent: [0, 40, 90, 128, 200, 254] },
  ],
  '1-bit palette': [
    1,
    { colour: 'palette', bits: 1, palette: palette.slice(3, 5), transparent: [100] },
  ],
};

/** Numerators and denominators. */
const delays = [1, 10, 0, 7, 3, 0, 40, 1000, 65_535, 10, 7, 8];
const delayed = Array.from({ length: 6 }, (_, at): DrawnApngFrame => {
  const [part = 0, of = 0] = delays.slice(2 * at);
  return { delay: [part, of], draw: flat(at * 40, 0, 90, 255) };
});
const filling = (...draws: readonly Draw[]): DrawnApngFrame[] => draws.map((draw) => ({ draw }));

/** What is drawn on the canvas, by what it shows. */
const drawings: Readonly<Record<string, Omit<DrawnApng, keyof typeof canvas>>> = {
  'frames that fill the canvas': { frames: filling(red, green, blue) },
  'a source that is transparent takes away what is below': {
    frames: [{ draw: red }, { ...inside, draw: nothing, blend: 'source' }],
  },
  'over leaves what is below where it is transparent': {
    frames: [{ draw: red }, { ...inside, draw: nothing, blend: 'over' }],
  },
  'glass over glass': {
    frames: [glass, fade, glass, glass].map((draw) => ({ draw, blend: 'over' })),
  },
  'every disposal and blend': { frames: everyMode() },
  'previous on the first frame is background': {
    frames: [
      { draw: red, dispose: 'previous' },
      { ...inside, draw: blue, blend: 'over' },
    ],
  },
  'previous after previous': {
    frames: [
      { draw: green },
      { ...inside, draw: red, dispose: 'previous' },
      { ...inside, left: 6, draw: glass, blend: 'over', dispose: 'previous' },
      { ...inside, top: 4, draw: blue, dispose: 'background' },
      { ...corner, left: 0, top: 0 },
    ],
  },
  'a default image that is none of the frames': {
    still: fade,
    frames: [{ ...inside, draw: red }, { draw: blue }],
  },
  'one frame that is not the default image': { still: green, frames: [{ ...inside, draw: fade }] },
  'one frame that is the default image': { frames: [{ draw: fade }] },
  'image data in pieces': {
    pieces: 7,
    frames: [{ draw: fade }, { ...inside, draw: fade, blend: 'over' }],
  },
  'rows in passes': {
    isInterlaced: true,
    frames: [{ draw: fade }, { ...inside, draw: fade, blend: 'over' }, corner],
  },
  'delays of many fractions, three plays': { plays: 3, frames: delayed },
  'equal frames': { frames: filling(red, red, red, blue, blue) },
  ...Object.fromEntries(
    Object.entries(kinds).flatMap(([name, [channels, kind]]) => [
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
