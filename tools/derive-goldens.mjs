/**
 * Creates the originals of the golden suite that are in no corpus, in `fixtures/golden-originals/`. Its `index.tsv`
 * has their descriptions, sources and licences.
 *
 *     node tools/derive-goldens.mjs
 *
 * This file writes colour profiles, animations and odd sizes from their specifications, without the code under test.
 * Pixels are drawn here or read from `fixtures/corpus`. The same release of sharp creates the same bytes. Fails if a
 * file has no row, or a row has no file.
 */

import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';

/** @typedef {{ x?: number, y?: number, width: number, height: number }} Place */

const fixturesDir = fileURLToPath(new URL('../fixtures/', import.meta.url));
const targetDir = path.join(fixturesDir, 'golden-originals');

const corpus = (file) => readFile(path.join(fixturesDir, 'corpus', file));

// ---- ICC profiles (ICC.1:2001-04) ------------------------------------------------------------

const fixed = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(Math.round(value * 65536));
  return bytes;
};
const xyzTag = (xyz) => Buffer.concat([Buffer.from('XYZ \0\0\0\0'), ...xyz.map(fixed)]);
const curveTag = (gamma) => {
  const bytes = Buffer.from('curv\0\0\0\0\0\0\0\x01\0\0\0\0', 'latin1');
  bytes.writeUInt16BE(Math.round(gamma * 256), 12);
  return bytes;
};
const descriptionTag = (name) => {
  const bytes = Buffer.alloc(90 + name.length + 1);
  bytes.write('desc', 0);
  bytes.writeUInt32BE(name.length + 1, 8);
  bytes.write(name, 12);
  return bytes;
};
const d50 = [0.9642, 1, 0.8249];

function profile(deviceClass, space, connection, tags) {
  const names = Object.keys(tags);
  const header = Buffer.alloc(128 + 4 + 12 * names.length);
  header.write('\x02\x40\0\0', 8, 'latin1');
  header.write(deviceClass + space + connection, 12);
  header.writeUInt16BE(2000, 24);
  header.writeUInt16BE(1, 26);
  header.writeUInt16BE(1, 28);
  header.write('acsp', 36);
  Buffer.concat(d50.map(fixed)).copy(header, 68);
  header.writeUInt32BE(names.length, 128);
  const parts = [header];
  let offset = header.length;
  names.forEach((name, index) => {
    const data = tags[name] ?? Buffer.alloc(0);
    const entry = 132 + 12 * index;
    header.write(name, entry);
    header.writeUInt32BE(offset, entry + 4);
    header.writeUInt32BE(data.length, entry + 8);
    const padded = Buffer.concat([data, Buffer.alloc((4 - (data.length % 4)) % 4)]);
    parts.push(padded);
    offset += padded.length;
  });
  header.writeUInt32BE(offset, 0);
  return Buffer.concat(parts);
}

/** @param {number[][]} primaries  XYZ of red, green and blue, adapted to D50 */
const matrixProfile = (name, gamma, [red = [], green = [], blue = []]) =>
  profile('mntr', 'RGB ', 'XYZ ', {
    desc: descriptionTag(name),
    cprt: Buffer.from('text\0\0\0\0none\0'),
    wtpt: xyzTag(d50),
    rXYZ: xyzTag(red),
    gXYZ: xyzTag(green),
    bXYZ: xyzTag(blue),
    rTRC: curveTag(gamma),
    gTRC: curveTag(gamma),
    bTRC: curveTag(gamma),
  });

/** Adobe RGB (1998) Color Image Encoding §4.3.4.2, adapted to D50 by Bradford. */
const adobeRgb = matrixProfile('Adobe RGB (1998) by numbers', 563 / 256, [
  [0.60974, 0.31111, 0.01947],
  [0.20528, 0.62567, 0.06087],
  [0.14919, 0.06322, 0.74457],
]);
/** ROMM RGB, ISO 22028-2:2013, with the plain gamma of 1.8. */
const proPhoto = matrixProfile('ProPhoto RGB by numbers', 1.8, [
  [0.79767, 0.28804, 0],
  [0.13519, 0.71187, 0],
  [0.03134, 0.00009, 0.8249],
]);
/** A linear profile, which differs from sRGB so much that a missing conversion is visible. */
const linearGrey = profile('mntr', 'GRAY', 'XYZ ', {
  desc: descriptionTag('grey, gamma 1.0'),
  cprt: Buffer.from('text\0\0\0\0none\0'),
  wtpt: xyzTag(d50),
  kTRC: curveTag(1),
});

/** `lut8Type` with two grid points a channel. @param {number} channels @param {number[]} corners in 8 bits of Lab */
function tableTag(channels, corners) {
  const identity = Array.from({ length: 256 }, (_, i) => i);
  const head = Buffer.from(`mft1\0\0\0\0${String.fromCharCode(channels)}\x03\x02\0`, 'latin1');
  const unity = [1, 0, 0, 0, 1, 0, 0, 0, 1].map(fixed);
  const curves = (/** @type {number} */ count) => Array(count).fill(identity).flat();
  const table = [...curves(channels), ...corners.map(Math.round), ...curves(3)];
  return Buffer.concat([head, ...unity, Buffer.from(table)]);
}

/**
 * A printer profile: linear interpolation between the colours of 16 solid overprints. The inks are a newspaper's,
 * relative to the paper, so that they differ from those of any default profile.
 */
const newspaper = (() => {
  const inks = [
    [66, -22, -25],
    [62, 44, -2],
    [94, -4, 58],
    [40, 0, 0],
  ];
  const table = Array.from({ length: 16 }, (_, solids) =>
    inks
      .filter((_, i) => (solids & (8 >> i)) > 0)
      .reduce(
        (sum, ink) => [(sum[0] * ink[0]) / 100, sum[1] + ink[1], sum[2] + ink[2]],
        [100, 0, 0],
      )
      // Chroma decreases with lightness: the overprint of all inks is almost neutral.
      .map((value, i, [lightness]) =>
        i === 0 ? value * 2.55 : 128 + value * (lightness / 100) ** 0.5,
      ),
  ).flat();
  return profile('prtr', 'CMYK', 'Lab ', {
    desc: descriptionTag('newspaper, two grid points an ink'),
    cprt: Buffer.from('text\0\0\0\0none\0'),
    wtpt: xyzTag(d50),
    A2B0: tableTag(4, table),
  });
})();

/** A screen profile: linear interpolation between the corners, from black over blue and green to white. */
const cornersOfScreen = profile('mntr', 'RGB ', 'Lab ', {
  desc: descriptionTag('screen, two grid points a channel'),
  cprt: Buffer.from('text\0\0\0\0none\0'),
  wtpt: xyzTag(d50),
  A2B0: tableTag(
    3,
    [
      ...[
        [0, 0, 0],
        [30, 68, -112],
        [83, -110, 80],
        [91, -70, -20],
      ],
      ...[
        [55, 85, 70],
        [60, 98, -60],
        [97, -22, 94],
        [100, 0, 0],
      ],
    ].flatMap(([lightness, a, b]) => [lightness * 2.55, 128 + a, 128 + b]),
  ),
});

/** Inserts a segment after the SOI of a JPEG. @param {Buffer} jpeg @param {number} marker @param {Buffer} data */
function insertJpegSegment(jpeg, marker, data) {
  const head = Buffer.from([0xff, marker, 0, 0]);
  head.writeUInt16BE(data.length + 2, 2);
  return Buffer.concat([jpeg.subarray(0, 2), head, data, jpeg.subarray(2)]);
}

/** ICC.1:2001-04 B.4. @param {Buffer} jpeg @param {Buffer} icc */
const tagJpeg = (jpeg, icc) =>
  insertJpegSegment(
    jpeg,
    0xe2,
    Buffer.concat([Buffer.from('ICC_PROFILE\0\x01\x01', 'latin1'), icc]),
  );

function pngChunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** Inserts a chunk after the header of a PNG. @param {Buffer} png @param {string} type @param {Buffer} data */
function insertPngChunk(png, type, data) {
  return Buffer.concat([png.subarray(0, 33), pngChunk(type, data), png.subarray(33)]);
}

function tagPng(png, icc) {
  return insertPngChunk(png, 'iCCP', Buffer.concat([Buffer.from('icc\0\0'), deflateSync(icc)]));
}

// ---- Drawing ---------------------------------------------------------------------------------

function paint(width, height, colours) {
  const data = Buffer.alloc(width * height * 3);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) data.set(colours(x, y), 3 * (y * width + x));
  }
  return sharp(data, { raw: { width, height, channels: 3 } });
}

const hues = [
  [255, 0, 0],
  [255, 255, 0],
  [0, 255, 0],
  [0, 255, 255],
  [0, 0, 255],
  [255, 0, 255],
];
/** Six full hues from black over the hue to white, above a grey wedge, 96×80. */
function chart(x, y) {
  if (y >= 64) return [x, x, x].map((v) => Math.round((v * 255) / 95));
  const hue = hues[Math.floor(x / 16)] ?? [];
  const t = y / 63;
  return hue.map((v) => Math.round(t < 0.5 ? 2 * t * v : v + (2 * t - 1) * (255 - v)));
}

/** Letters on an asymmetric background, 64×40; `step` moves the ball. @param {number} step */
const signpost = (step) =>
  Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="64" height="40">
    <rect width="64" height="40" fill="#9fd0ff"/><rect y="28" width="64" height="12" fill="#3f9b4f"/>
    <path d="M6 6h20v6H12v5h10v6H12v11H6z" fill="#b3202c"/>
    <circle cx="${36 + 9 * step}" cy="20" r="5" fill="#ffcf33"/></svg>`);

/** Operations that convert a displayed picture to the stored one of an orientation (EXIF 2.32 §4.6.4). */
const stored = /** @type {Record<number, { turn: number, mirror: boolean }>} */ ({
  1: { turn: 0, mirror: false },
  2: { turn: 0, mirror: true },
  3: { turn: 180, mirror: false },
  4: { turn: 180, mirror: true },
  5: { turn: 90, mirror: true },
  6: { turn: 270, mirror: false },
  7: { turn: 270, mirror: true },
  8: { turn: 90, mirror: false },
});

async function store(displayed, orientation) {
  const { turn, mirror } = stored[orientation] ?? { turn: 0, mirror: false };
  const turned = await sharp(displayed).removeAlpha().rotate(turn).png().toBuffer();
  return sharp(turned).flop(mirror);
}
const storedSignpost = (orientation, step) => store(signpost(step), orientation);

/** TIFF structure with an orientation only. @param {number} orientation */
const exif = (orientation) =>
  Buffer.from(
    `4d4d002a000000080001011200030000000100${orientation.toString(16).padStart(2, '0')}000000000000`,
    'hex',
  );

// ---- APNG (PNG 3rd edition §11.3.6) -----------------------------------------------------------

/**
 * Writes an APNG with a default image that is not a frame. All pictures are PNGs of one bit depth and colour type.
 *
 * @param {{ x?: number, y?: number, delay: [number, number], dispose: number, blend: number, image: Buffer }[]} frames
 */
function apng(still, plays, frames) {
  let sequence = 0;
  const u32 = (...values) =>
    Buffer.concat(values.map((value) => Buffer.from(value.toString(16).padStart(8, '0'), 'hex')));
  const u16 = (...values) => Buffer.concat(values.map((value) => u32(value).subarray(2)));
  const number = () => {
    sequence += 1;
    return u32(sequence - 1);
  };
  const chunks = frames.flatMap(({ x = 0, y = 0, delay, dispose, blend, image }) => {
    const size = image.subarray(16, 24);
    const modes = Buffer.from([dispose, blend]);
    const control = Buffer.concat([number(), size, u32(x, y), u16(...delay), modes]);
    const data = Buffer.concat([number(), imageDataOf(image)]);
    return [pngChunk('fcTL', control), pngChunk('fdAT', data)];
  });
  const head = insertPngChunk(still, 'acTL', u32(frames.length, plays));
  return Buffer.concat([head.subarray(0, -12), ...chunks, head.subarray(-12)]);
}

/** Returns the payload of all IDAT of a PNG. @param {Buffer} png */
function imageDataOf(png) {
  const parts = [];
  for (let at = 8; at < png.length; ) {
    const end = at + 8 + png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, end));
    at = end + 4;
  }
  return Buffer.concat(parts);
}

const alphaPng = (image) => image.ensureAlpha().png({ palette: false }).toBuffer();

// ---- GIF (GIF89a specification) --------------------------------------------------------------

const palette = [
  [0, 0, 0],
  [255, 255, 255],
  [214, 39, 40],
  [44, 160, 44],
  [31, 119, 180],
  [255, 187, 51],
  [148, 103, 189],
  [127, 127, 127],
];
/** Index in `palette`. */
const transparent = 7;

/** LZW without compression: a clear code comes before the table makes codes longer. @param {number[]} indices */
function packCodes(indices) {
  const codes = [8, ...indices.flatMap((v, i) => ((i + 1) % 6 === 0 ? [v, 8] : [v])), 9];
  const bytes = Buffer.alloc(Math.ceil((codes.length * 4) / 8));
  codes.forEach((code, i) => {
    bytes[i >> 1] |= code << (4 * (i & 1));
  });
  const blocks = [];
  for (let at = 0; at < bytes.length; at += 255) {
    const block = bytes.subarray(at, at + 255);
    blocks.push(Buffer.from([block.length]), block);
  }
  return Buffer.concat([Buffer.from([3]), ...blocks, Buffer.from([0])]);
}

/**
 * Writes an animated GIF with `palette`.
 *
 * @param {number | undefined} repeats  Of the NETSCAPE extension: 0 is endless. Omit for no extension.
 * @param {(Place & { delayCs: number, disposal?: number, colour: (x: number, y: number) => number })[]} frames
 */
function gif(screen, repeats, frames) {
  const u16 = (/** @type {number[]} */ ...values) => {
    const bytes = Buffer.alloc(2 * values.length);
    values.forEach((value, i) => {
      bytes.writeUInt16LE(value, 2 * i);
    });
    return bytes;
  };
  const loop =
    repeats === undefined
      ? []
      : [Buffer.from('\x21\xff\x0bNETSCAPE2.0\x03\x01', 'latin1'), u16(repeats), Buffer.from([0])];
  const images = frames.flatMap(
    ({ x = 0, y = 0, width, height, delayCs, disposal = 0, colour }) => [
      Buffer.from([0x21, 0xf9, 4, (disposal << 2) | 1]),
      u16(delayCs),
      Buffer.from([transparent, 0, 0x2c]),
      u16(x, y, width, height),
      Buffer.from([0]),
      packCodes(
        Array.from({ length: width * height }, (_, i) => colour(i % width, Math.floor(i / width))),
      ),
    ],
  );
  return Buffer.concat([
    Buffer.from('GIF89a'),
    u16(screen.width, screen.height),
    Buffer.from([0x82, 0, 0]),
    Buffer.from(palette.flat()),
    ...loop,
    ...images,
    Buffer.from([0x3b]),
  ]);
}

const plain = (colour) => () => colour;
/** A ring with a hole. @param {number} size @param {number} colour */
const ring = (size, colour) => (/** @type {number} */ x, /** @type {number} */ y) => {
  const distance = Math.hypot(x - (size - 1) / 2, y - (size - 1) / 2);
  return distance <= size / 2 && distance > size / 5 ? colour : transparent;
};
/** Stripes with a transparent right third. @param {number} width @param {number} a @param {number} b */
const scene = (width, a, b) => (/** @type {number} */ x, /** @type {number} */ y) =>
  x >= (2 * width) / 3 ? transparent : (x + y) % 16 < 8 ? a : b;

// ---- WebP (RFC 9649) -------------------------------------------------------------------------

function riff(fourCc, ...parts) {
  const payload = Buffer.concat(parts);
  const head = Buffer.alloc(8);
  head.write(fourCc);
  head.writeUInt32LE(payload.length, 4);
  return Buffer.concat([head, payload, Buffer.alloc(payload.length % 2)]);
}
const u24 = (...values) => {
  const bytes = Buffer.alloc(3 * values.length);
  values.forEach((value, i) => {
    bytes.writeUIntLE(value, 3 * i, 3);
  });
  return bytes;
};

/**
 * Writes an animated WebP of lossless frames; x and y are even. If `plays` is 0, it repeats endlessly.
 *
 * @param {(Place & { delayMs: number, blends?: boolean, disposes?: boolean, image: import('sharp').Sharp })[]} frames
 * @param {Buffer} [metadata]  EXIF
 */
async function webp(canvas, plays, frames, metadata) {
  const chunks = [];
  for (const {
    x = 0,
    y = 0,
    width,
    height,
    delayMs,
    blends = true,
    disposes = false,
    image,
  } of frames) {
    const still = await image.webp({ lossless: true, exact: true, effort: 6 }).toBuffer();
    const from = still.indexOf('VP8L');
    const bitstream = still.subarray(from + 8, from + 8 + still.readUInt32LE(from + 4));
    const flags = Buffer.from([(blends ? 0 : 2) | (disposes ? 1 : 0)]);
    const head = u24(x / 2, y / 2, width - 1, height - 1, delayMs);
    chunks.push(riff('ANMF', head, flags, riff('VP8L', bitstream)));
  }
  const loop = Buffer.alloc(6);
  loop.writeUInt16LE(plays, 4);
  const header = Buffer.concat([
    Buffer.from([metadata === undefined ? 0x12 : 0x1a, 0, 0, 0]),
    u24(canvas.width - 1, canvas.height - 1),
  ]);
  const trailer = metadata === undefined ? [] : [riff('EXIF', metadata)];
  return riff(
    'RIFF',
    Buffer.from('WEBP'),
    riff('VP8X', header),
    riff('ANIM', loop),
    ...chunks,
    ...trailer,
  );
}

const disc = (size, fill) =>
  sharp(
    Buffer.from(
      `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}"><circle cx="${size / 2}" cy="${size / 2}" r="${size / 2 - 1}" fill="${fill}"/></svg>`,
    ),
  );
const dusk = (width, height) =>
  paint(width, height, (x, y) => [200 - 2 * y, 90 + y, 60 + Math.round((190 * x) / width)]);

// ---- The originals ---------------------------------------------------------------------------

const bricks = await corpus('jpeg-photo/wuffs__bricks-color.jpeg');
const greyBricks = await corpus('jpeg-gray/wuffs__bricks-gray.jpeg');
const bricksPng = await corpus('png-8/wuffs__bricks-color.png');
const cmyk = await corpus('jpeg-cmyk/pillow__pil_sample_cmyk.jpg');
const chartPng = await paint(96, 80, chart).png({ compressionLevel: 9 }).toBuffer();
const deepChartPng = await paint(96, 80, chart)
  .toColourspace('rgb16')
  .png({ compressionLevel: 9 })
  .toBuffer();
const clearChartPng = tagPng(
  await sharp(deepChartPng).ensureAlpha(0.6).png({ compressionLevel: 9 }).toBuffer(),
  adobeRgb,
);
const deepAvif = (png) =>
  sharp(png)
    .keepIccProfile()
    .toColourspace('rgb16')
    .avif({ bitdepth: 10, lossless: true, chromaSubsampling: '4:4:4', effort: 4 })
    .toBuffer();
const unknownVersion = Buffer.from(adobeRgb).fill(99, 8, 9);
const small = { width: 64, height: 40 };
const lace = (/** @type {number} */ x, /** @type {number} */ y) =>
  /** @type {const} */ ([12 * (x % 20), (y >> 6) % 256, y % 512 < 16 ? 255 : 60]);

const turnedAnimation = async (orientation) => {
  const isTurned = orientation >= 5;
  const canvas = isTurned ? { width: 40, height: 64 } : small;
  const frames = [0, 1, 2].map(async (step) => ({
    ...canvas,
    delayMs: 100 + 50 * step,
    image: await storedSignpost(orientation, step),
  }));
  return webp(canvas, 0, await Promise.all(frames), exif(orientation));
};

async function makeEach(orientations, nameOf, make) {
  const entries = orientations.map(async (each) => [nameOf(each), await make(each)]);
  return Object.fromEntries(await Promise.all(entries));
}

/** Bytes by file name. @type {Record<string, Buffer>} */
const originals = {
  'adobe-rgb.jpg': tagJpeg(bricks, adobeRgb),
  'adobe-rgb-chart.png': tagPng(chartPng, adobeRgb),
  'prophoto-chart-16-bit.png': tagPng(deepChartPng, proPhoto),
  'adobe-rgb-chart-10-bit.avif': await deepAvif(tagPng(deepChartPng, adobeRgb)),
  'adobe-rgb-alpha-16-bit.png': clearChartPng,
  'adobe-rgb-alpha-10-bit.avif': await deepAvif(clearChartPng),
  'table-profile-16-bit.png': tagPng(deepChartPng, cornersOfScreen),
  'unknown-version-16-bit.png': tagPng(deepChartPng, unknownVersion),
  'text-profile-16-bit.png': tagPng(
    deepChartPng,
    Buffer.from('no profile at all, but a text. '.repeat(30)),
  ),
  'grey-linear-16-bit.png': tagPng(
    await sharp(greyBricks).toColourspace('grey16').png().toBuffer(),
    linearGrey,
  ),
  'grey-linear.jpg': tagJpeg(greyBricks, linearGrey),
  'cmyk-newspaper.jpg': tagJpeg(cmyk, newspaper),
  'chart.png': chartPng,
  ...(await makeEach(
    [1, 2, 3, 4, 5, 6, 7, 8],
    (orientation) => `orientation-${orientation}.jpg`,
    async (orientation) =>
      insertJpegSegment(
        await (await store(bricksPng, orientation)).jpeg({ quality: 90 }).toBuffer(),
        0xe1,
        Buffer.concat([Buffer.from('Exif\0\0'), exif(orientation)]),
      ),
  )),
  ...(await makeEach(
    [3, 5, 7, 8],
    (orientation) => `orientation-${orientation}.png`,
    async (orientation) =>
      insertPngChunk(
        await (await storedSignpost(orientation, 0)).png().toBuffer(),
        'eXIf',
        exif(orientation),
      ),
  )),
  ...(await makeEach(
    [6, 7],
    (orientation) => `orientation-${orientation}.webp`,
    async (orientation) =>
      await (await storedSignpost(orientation, 0))
        .withMetadata({ orientation })
        .webp({ lossless: true })
        .toBuffer(),
  )),
  ...(await makeEach(
    [1, 2, 3, 4, 5, 6, 7, 8],
    (orientation) => `animated-orientation-${orientation}.webp`,
    async (orientation) => await turnedAnimation(orientation),
  )),
  'delays.gif': gif(
    { width: 48, height: 32 },
    5,
    [0, 1, 2, 10_000, 65_535].map((delayCs, i) => ({
      width: 48,
      height: 32,
      delayCs,
      colour: scene(72, i, i + 1),
    })),
  ),
  'disposal.gif': gif({ width: 60, height: 48 }, 0, [
    { width: 60, height: 48, delayCs: 10, disposal: 1, colour: scene(60, 5, 4) },
    { x: 4, y: 4, width: 24, height: 24, delayCs: 12, disposal: 3, colour: ring(24, 2) },
    { x: 30, y: 20, width: 24, height: 24, delayCs: 14, disposal: 2, colour: ring(24, 3) },
    { x: 8, y: 16, width: 20, height: 20, delayCs: 16, disposal: 0, colour: plain(6) },
    { x: 20, y: 8, width: 24, height: 24, delayCs: 18, disposal: 2, colour: ring(24, 0) },
    { x: 0, y: 40, width: 60, height: 8, delayCs: 20, disposal: 1, colour: plain(1) },
  ]),
  'duplicate-frames.gif': gif(
    { width: 40, height: 40 },
    undefined,
    [2, 2, 2, 4, 4, 2].map((colour, i) => ({
      width: 40,
      height: 40,
      delayCs: 5 + i,
      disposal: 2,
      colour: ring(40, colour),
    })),
  ),
  'growing-canvas.gif': gif({ width: 20, height: 16 }, 0, [
    { width: 60, height: 40, delayCs: 20, disposal: 1, colour: scene(90, 3, 1) },
    { x: 24, y: 8, width: 24, height: 24, delayCs: 30, disposal: 1, colour: ring(24, 2) },
    { x: 30, y: 14, width: 30, height: 26, delayCs: 40, disposal: 1, colour: plain(6) },
  ]),
  'neighbours.gif': gif(
    { width: 64, height: 64 },
    0,
    [0, 1, 0, 1].map((colour) => ({ width: 64, height: 64, delayCs: 10, colour: plain(colour) })),
  ),
  'delays.webp': await webp(small, 7, [
    { ...small, delayMs: 0, image: dusk(64, 40) },
    { x: 4, y: 4, width: 20, height: 20, delayMs: 10, image: disc(20, '#ffcf33') },
    {
      x: 20,
      y: 10,
      width: 28,
      height: 28,
      delayMs: 33,
      disposes: true,
      image: disc(28, '#b3202c'),
    },
    { x: 30, y: 2, width: 16, height: 16, delayMs: 1, blends: false, image: disc(16, '#ffffff') },
    { x: 0, y: 30, width: 10, height: 10, delayMs: 100_000, image: disc(10, '#00000080') },
  ]),
  'image-apart.png': insertPngChunk(
    apng(await alphaPng(await storedSignpost(7, 0)), 5, [
      { delay: [5, 0], dispose: 0, blend: 0, image: await alphaPng(dusk(40, 64)) },
      {
        ...{ x: 4, y: 6, delay: [1, 30], dispose: 2, blend: 1 },
        image: await alphaPng(disc(30, '#b3202cc0')),
      },
      {
        ...{ x: 14, y: 30, delay: [1, 30], dispose: 1, blend: 1 },
        image: await alphaPng(disc(24, '#ffcf33')),
      },
      {
        ...{ x: 0, y: 0, delay: [1, 30], dispose: 0, blend: 0 },
        image: await alphaPng(disc(20, '#2ca02c80')),
      },
    ]),
    'eXIf',
    exif(7),
  ),
  'blended.png': insertPngChunk(
    apng(await alphaPng(dusk(40, 40)), 0, [
      { delay: [1, 10], dispose: 0, blend: 0, image: await alphaPng(disc(40, '#0064c832')) },
      {
        ...{ x: 5, y: 8, delay: [1, 10], dispose: 0, blend: 1 },
        image: await alphaPng(disc(30, '#c8000064')),
      },
      { delay: [1, 10], dispose: 0, blend: 1, image: await alphaPng(disc(40, '#ffffff00')) },
    ]),
    'gAMA',
    Buffer.from('0000d904', 'hex'),
  ),
  'duplicate-frames.webp': await webp(
    { width: 40, height: 40 },
    2,
    ['#d62728', '#d62728', '#1f77b4', '#1f77b4', '#d62728', '#d62728'].map((fill, i) => ({
      width: 40,
      height: 40,
      delayMs: 41 + i,
      blends: false,
      image: disc(40, `${fill}a0`),
    })),
  ),
  'equal-frames.webp': await webp(
    { width: 40, height: 40 },
    0,
    [250, 20, 500].map((delayMs) => ({
      width: 40,
      height: 40,
      delayMs,
      blends: false,
      image: disc(40, '#2ca02c'),
    })),
  ),
  'tall.png': await paint(20, 70_000, lace).png({ compressionLevel: 9, palette: false }).toBuffer(),
  'wide.png': await paint(20_000, 30, (x, y) => lace(y, x))
    .png({ compressionLevel: 9 })
    .toBuffer(),
  'needle.png': await paint(1, 70_000, lace).png({ compressionLevel: 9 }).toBuffer(),
  'line.png': await paint(600, 1, (x) => [
    Math.round((x * 255) / 599),
    120,
    255 - Math.round((x * 255) / 599),
  ])
    .png()
    .toBuffer(),
  '10-bit.avif': await sharp(bricksPng).avif({ bitdepth: 10, quality: 70, effort: 4 }).toBuffer(),
  'primary-last.avif': withGridLast(await corpus('avif/libavif__sofa_grid1x5_420.avif')),
};

for (const [file, bytes] of Object.entries(originals)) {
  await writeFile(path.join(targetDir, file), bytes);
}
await checkIndex();

/** Renumbers the grid, item 1 of a file with the tiles 2 to 6, to 7: decoders order items by number. */
function withGridLast(avif) {
  const bytes = Buffer.from(avif);
  // Offsets of the item's number from the type of each box.
  const places = { pitm: 8, iloc: 12, infe: 8, dimg: 4, ipma: 12 };
  for (const [type, offset] of Object.entries(places)) {
    const at = bytes.indexOf(type, 0, 'latin1') + offset;
    if (bytes.readUInt16BE(at) !== 1) throw new Error(`Expected item 1 in ${type}`);
    bytes.writeUInt16BE(7, at);
  }
  return bytes;
}

/** @throws Error unless the index has one row for each original, and the directory no other file */
async function checkIndex() {
  const index = await readFile(path.join(targetDir, 'index.tsv'), 'utf8');
  const rows = index
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((row) => row.split('\t')[0] ?? '');
  const files = (await readdir(targetDir)).filter((file) => file !== 'index.tsv');
  const made = Object.keys(originals);
  const counts = new Map();
  for (const file of [...rows, ...files, ...made]) counts.set(file, (counts.get(file) ?? 0) + 1);
  const wrong = [...counts].filter(([, count]) => count !== 3).map(([file]) => file);
  if (wrong.length > 0) throw new Error(`Without a row or without a file: ${wrong.join(', ')}`);
}
