import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { useTemporaryFolder } from '../temporary-folder.ts';
import { findBox } from './sources.ts';

type Colour = readonly (number | undefined)[];

/** Colours of the quadrants of every video here: top left, top right, bottom left, bottom right. */
const [BLUE, ORANGE, GREEN, PURPLE] = [
  [60, 130, 200],
  [230, 120, 40],
  [90, 170, 60],
  [150, 60, 150],
] as const satisfies Colour[];
const quadrants: readonly Colour[] = [BLUE, ORANGE, GREEN, PURPLE];
/** The same as grey of the luma of BT.709. */
const greys: readonly Colour[] = [120, 138, 145, 86].map((grey) => [grey, grey, grey]);

const WIDTH = 192;
const HEIGHT = 144;

/** A video that ffmpeg makes of the quadrants, and its poster. */
export interface MadeVideo {
  readonly name: string;
  readonly make: () => Promise<Buffer>;
  readonly size: string;
  readonly colours: readonly Colour[];
}

/** Draws the quadrants from a pixel each. */
function draw<Pixel>(pixels: readonly Pixel[], width = WIDTH, height = HEIGHT): Pixel[] {
  return Array.from({ length: width * height }, (_, at) => {
    const isRight = at % width >= width / 2;
    const isLower = at >= (width * height) / 2;
    return pixels[(isLower ? 2 : 0) + (isRight ? 1 : 0)] as Pixel;
  });
}

/** Encodes four frames. */
async function encode(input: string, frame: Uint8Array, output: string, file: string) {
  const args = `-f rawvideo -s ${WIDTH}x${HEIGHT} -r 8 ${input} -i pipe:0 ${output}`;
  return await runFfmpeg(args, file, Buffer.concat([frame, frame, frame, frame]));
}

const rgba = (alphas: readonly number[]) =>
  Uint8Array.from(draw(quadrants.map((colour, at) => [...colour, alphas[at] ?? 255])).flat());

const bt709 =
  '-vf scale=out_color_matrix=bt709:out_range=tv -colorspace bt709 -color_primaries bt709 -color_trc bt709 -color_range tv';

const sdr =
  (output: string, file: string, alphas: readonly number[] = []) =>
  () =>
    encode('-pix_fmt rgba', rgba(alphas), output, file);

const hevc = '-c:v libx265 -tag:v hvc1 -x265-params log-level=none';
const av1 = '-c:v libaom-av1 -usage realtime -cpu-used 8';
const vp9 = '-c:v libvpx-vp9 -deadline realtime';

const depths: MadeVideo[] = (
  [
    ['h264', '-c:v libx264', 'a.mp4', ['yuv422p', 'yuv420p10le', 'yuv444p10le', 'gray']],
    ['hevc', hevc, 'a.mov', ['yuv420p', 'yuv422p10le', 'yuv444p12le', 'gray10le']],
    ['vp9', vp9, 'a.webm', ['yuv444p', 'yuv420p10le', 'yuv422p10le']],
    ['av1', av1, 'a.mkv', ['yuv420p', 'yuv444p10le', 'gray']],
  ] as const
).flatMap(([codec, encoder, file, formats]) =>
  formats.map((format) => ({
    name: `${codec} of ${format}`,
    make: sdr(`${bt709} -pix_fmt ${format} ${encoder}`, file),
    size: `${WIDTH}x${HEIGHT}`,
    colours: format.startsWith('gray') ? greys : quadrants,
  })),
);

const alphas = [255, 0, 128, 64];
const transparent: MadeVideo[] = (
  [
    ['vp8', '-c:v libvpx -b:v 2M'],
    ['vp9', '-c:v libvpx-vp9'],
  ] as const
).map(([codec, encoder]) => ({
  name: `${codec} with alpha`,
  make: sdr(`-pix_fmt yuva420p -auto-alt-ref 0 ${encoder}`, 'a.webm', alphas),
  size: `${WIDTH}x${HEIGHT}`,
  colours: quadrants.map(([red, green, blue], at) => [red, green, blue, alphas[at]]),
}));

/** The linear part of a track's matrix, by the orientation in the words of EXIF, and the quadrants as they are then shown. */
const matrices: Readonly<Record<string, readonly [readonly number[], readonly Colour[]]>> = {
  'upside down': [
    [-1, 0, 0, -1],
    [PURPLE, GREEN, ORANGE, BLUE],
  ],
  mirrored: [
    [-1, 0, 0, 1],
    [ORANGE, BLUE, PURPLE, GREEN],
  ],
  'mirrored upside down': [
    [1, 0, 0, -1],
    [GREEN, PURPLE, BLUE, ORANGE],
  ],
  'turned right': [
    [0, 1, -1, 0],
    [GREEN, BLUE, PURPLE, ORANGE],
  ],
  'turned left': [
    [0, -1, 1, 0],
    [ORANGE, PURPLE, BLUE, GREEN],
  ],
  'mirrored and turned left': [
    [0, 1, 1, 0],
    [BLUE, GREEN, ORANGE, PURPLE],
  ],
  'mirrored and turned right': [
    [0, -1, -1, 0],
    [PURPLE, ORANGE, GREEN, BLUE],
  ],
  'turned by 60 degrees': [
    [0.5, 0.866, -0.866, 0.5],
    [GREEN, BLUE, PURPLE, ORANGE],
  ],
};

/** Writes the matrix of the first track. */
function withMatrix(video: Buffer, [a = 1, b = 0, c = 0, d = 1]: readonly number[]): Buffer {
  const matrix = findBox(video, 'tkhd') + 48;
  for (const [at, value] of [a, b, 0, c, d, 0].entries()) {
    video.writeInt32BE(Math.round(value * 65_536), matrix + 4 * at);
  }
  return video;
}

const turned: MadeVideo[] = Object.entries(matrices).map(([name, [matrix, colours]]) => ({
  name,
  make: async () =>
    withMatrix(await sdr(`${bt709} -pix_fmt yuv420p -c:v libx264`, 'a.mp4')(), matrix),
  size: /upside|^mirrored$/.test(name) ? `${WIDTH}x${HEIGHT}` : `${HEIGHT}x${WIDTH}`,
  colours,
}));

/** Linear light of sRGB in BT.2020 (ITU-R BT.2087), in cd/m² where white has 203. */
function toNits([red, green, blue]: Colour): number[] {
  const light = [red, green, blue].map((level = 0) =>
    level <= 10 ? level / 255 / 12.92 : ((level / 255 + 0.055) / 1.055) ** 2.4,
  );
  const rows = [
    [0.6274, 0.3293, 0.0433],
    [0.0691, 0.9195, 0.0114],
    [0.0164, 0.088, 0.8956],
  ];
  return rows.map((row) => 203 * row.reduce((sum, share, at) => sum + share * (light[at] ?? 0), 0));
}

const lumaOf = ([red = 0, green = 0, blue = 0]: readonly number[]): number =>
  0.2627 * red + 0.678 * green + 0.0593 * blue;

/** Samples 0 to 1 of a colour in cd/m²: PQ, HLG for a display of 1000 cd/m², and the curve of sRGB. */
const curves: Readonly<Record<string, (nits: readonly number[]) => number[]>> = {
  smpte2084: (nits) =>
    nits.map((each) => {
      const power = (each / 10_000) ** 0.1593017578125;
      return ((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power)) ** 78.84375;
    }),
  'arib-std-b67': (nits) => {
    const gain = (lumaOf(nits) / 1000) ** (1 / 1.2 - 1);
    return nits.map((each) => {
      const scene = (each / 1000) * gain;
      return scene <= 1 / 12
        ? Math.sqrt(3 * scene)
        : 0.17883277 * Math.log(12 * scene - 0.28466892) + 0.55991073;
    });
  },
  'bt2020-10': (nits) => nits.map((each) => 1.055 * (each / 203) ** (1 / 2.4) - 0.055),
};

/** A frame of 10 bits, 4:2:0, limited range, BT.2020. */
function drawBt2020(curve: (nits: readonly number[]) => number[]): Uint8Array {
  const planes = quadrants.map((colour) => {
    const samples = curve(toNits(colour));
    const luma = lumaOf(samples);
    const [red = 0, , blue = 0] = samples;
    return [
      64 + 876 * luma,
      512 + (896 * (blue - luma)) / 1.8814,
      512 + (896 * (red - luma)) / 1.4746,
    ].map(Math.round);
  });
  const plane = (channel: number, scale: number): number[] =>
    draw(
      planes.map((each) => each[channel] ?? 0),
      WIDTH / scale,
      HEIGHT / scale,
    );
  const samples = Uint16Array.from([...plane(0, 1), ...plane(1, 2), ...plane(2, 2)]);
  return new Uint8Array(samples.buffer);
}

const bright: MadeVideo[] = [
  ...Object.keys(curves).map((transfer) => [transfer, '-color_primaries bt2020'] as const),
  // Who writes a curve of HDR means BT.2020.
  ...['smpte2084', 'arib-std-b67'].map((transfer) => [transfer, ''] as const),
].map(([transfer, primaries]) => {
  const tags = `${primaries} -color_trc ${transfer} -colorspace bt2020nc -color_range tv`.trim();
  const drawn = drawBt2020(curves[transfer] ?? ((nits) => [...nits]));
  return {
    name: `BT.2020 with ${transfer}, ${primaries === '' ? 'without' : 'with'} its primaries`,
    make: () => encode(`-pix_fmt yuv420p10le ${tags}`, drawn, `${tags} ${hevc}`, 'a.mov'),
    size: `${WIDTH}x${HEIGHT}`,
    colours: quadrants,
  };
});

const x264 = '-pix_fmt yuv420p -c:v libx264';
const shapes: MadeVideo[] = [
  {
    name: 'full range of BT.709',
    make: sdr(`${bt709.replace('=tv', '=pc').replace(' tv', ' pc')} ${x264}`, 'a.mp4'),
    size: `${WIDTH}x${HEIGHT}`,
    colours: quadrants,
  },
  {
    name: 'pixels of 4:3, turned right',
    make: async () =>
      withMatrix(await sdr(`${bt709} -aspect 16:9 ${x264}`, 'a.mp4')(), [0, 1, -1, 0]),
    size: '144x256',
    colours: [GREEN, BLUE, PURPLE, ORANGE],
  },
  {
    name: 'pixels of 9:16',
    make: sdr(`${bt709} -aspect 3:4 ${x264}`, 'a.mkv'),
    size: '192x256',
    colours: quadrants,
  },
];

export const madeVideos: readonly MadeVideo[] = [
  ...depths,
  ...transparent,
  ...turned,
  ...bright,
  ...shapes,
];

/** A second of sound. @param coder name of one of ffmpeg's encoders */
export async function makeSound(coder: string, file: string): Promise<Buffer> {
  return await runFfmpeg(`-f lavfi -i sine=r=48000 -t 1 -c:a ${coder}`, file);
}

/** A video of three minutes with sound, whose tables are as long as those of a film of that length. */
export async function makeLongVideo(): Promise<Buffer> {
  const inputs = '-f lavfi -i testsrc2=s=64x48:r=30 -f lavfi -i sine=r=48000 -t 180';
  return await runFfmpeg(`${inputs} -c:v libx264 -preset veryfast -c:a aac`, 'a.mp4');
}

/** Makes a file by ffmpeg's arguments, and returns it. */
async function runFfmpeg(args: string, file: string, input?: Uint8Array): Promise<Buffer> {
  const folder = await useTemporaryFolder();
  const path = join(folder.path, file);
  const all = `-hide_banner -loglevel error ${args} ${path}`.split(' ');
  const { status, stderr } = spawnSync('ffmpeg', all, { input });
  if (status !== 0) throw new Error(`ffmpeg: ${stderr}`);
  return readFileSync(path);
}
