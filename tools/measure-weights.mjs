/**
 * Measures the costs of decoding and encoding, and prints them next to those of `src/contract/image-formats.ts`:
 *
 *     npm run measure:weights -- [--quick] [format...]
 *
 * A weight is the CPU time of one core per pixel, with sharp's concurrency of 1, as in workers. The typical
 * weight is the median over a photograph at three sizes of 0.7 to 6 megapixels; the minimum weight is that of one flat
 * colour of 12 megapixels. Each is the fastest of three runs. Decoding is to raw pixels, encoding from raw pixels. The
 * cost of a frame is the time per frame of an animation of small frames, without the cost of its pixels. `--quick` checks
 * only that everything runs: smaller images, one run.
 *
 * Only the ratios between rows matter, because admission learns how fast a machine is: if existing rows take twice as
 * long here, halve the measured weights of a new row. Run it on an idle machine.
 */

import { readFileSync } from 'node:fs';
import { cpuUsage } from 'node:process';
import sharp from 'sharp';
import {
  DEFAULT_WEBP_EFFORT,
  outputFormats,
  sourceFormats,
} from '../dist/contract/image-formats.js';
import { readImageHeader } from '../dist/formats/containers.js';
import { composeFrames } from '../dist/workers/child/compose-frames.js';
import { encodeAnimation, encodeStill } from '../dist/workers/child/encode.js';
import { decodeGif } from '../dist/workers/child/gif/decode-gif.js';
import { decodeHeic } from '../dist/workers/child/heic/decode-heic.js';
import { toPixels } from '../dist/workers/child/pixels.js';

/** @typedef {{ data: Buffer, width: number, height: number }} Raw  Pixels of three channels. */
/** @typedef {readonly [typicalNs: number, leastNs: number]} Weight */

const PHOTO = new URL(
  '../fixtures/corpus/jpeg-large/exifr__IMG_20180725_163423.jpg',
  import.meta.url,
);
const isQuick = process.argv[2] === '--quick';
const PHOTO_EDGES_PX = isQuick ? [280, 300, 320] : [840, 1_400, 2_450];
const FLAT_EDGE_PX = isQuick ? 320 : 3_464;
const ROUNDS = isQuick ? 2 : 4;
const FRAME_EDGE_PX = 48;
const FRAMES = 60;

sharp.concurrency(1);
sharp.cache(false);

const formats = process.argv.slice(isQuick ? 3 : 2);
const isSelected = (/** @type {string} */ format) =>
  formats.length === 0 || formats.includes(format);
const photos = await Promise.all(PHOTO_EDGES_PX.map(photograph));
const flat = await toRaw(
  sharp({
    create: { width: FLAT_EDGE_PX, height: FLAT_EDGE_PX, channels: 3, background: '#5a7d9a' },
  }),
);

for (const format of Object.keys(sourceFormats)) {
  if (!isSelected(format)) continue;
  if (format === 'heic') {
    print('decode heic', sourceFormats.heic.decodeWeight, await weighHeic());
    continue;
  }
  const { decodeWeight, reducedDecodeWeight, decodedFrameMs = 0 } = sourceFormats[format];
  const isComposed = format === 'apng';
  const still = isComposed ? 'png' : format;
  const encode = (/** @type {Raw} */ raw) => fromRaw(raw).toFormat(still).toBuffer();
  const decoded = await weigh(encode, (bytes, raw) =>
    isComposed
      ? compose([bytes], raw)
      : format === 'gif'
        ? composeGif(bytes, raw)
        : sharp(bytes).raw().toBuffer(),
  );
  print(`decode ${format}`, decodeWeight, decoded);
  if (reducedDecodeWeight !== undefined) {
    const eighth = (/** @type {Buffer} */ bytes, /** @type {Raw} */ { width }) =>
      sharp(bytes)
        .resize({ width: Math.ceil(width / 8) })
        .raw()
        .toBuffer();
    print(`decode ${format}, reduced`, reducedDecodeWeight, await weigh(encode, eighth));
  }
  if (decodedFrameMs > 0) {
    const ms = isComposed ? await cpuMsOfComposed() : await cpuMsOfDecoded(format);
    printFrames(`decode ${format}`, decodedFrameMs, ms, decoded[0]);
  }
}
for (const format of Object.keys(outputFormats)) {
  if (!isSelected(format)) continue;
  const { encodeWeights, encodedFrameMs, canAnimate } = outputFormats[format];
  for (const quality of Object.keys(encodeWeights)) {
    // The encoders of workers read no other field of a job.
    const jobOf = (/** @type {number} */ widthPx, /** @type {number} */ heightPx) =>
      /** @type {any} */ ({
        format,
        quality,
        webpEffort: DEFAULT_WEBP_EFFORT,
        size: { widthPx, heightPx },
      });
    const encode = (/** @type {Raw} */ raw) =>
      encodeStill(fromRaw(raw), jobOf(raw.width, raw.height));
    const encoded = await weigh(async (raw) => raw, encode);
    print(`encode ${format}, ${quality}`, encodeWeights[quality], encoded);
    if (canAnimate && quality === 'high') {
      const job = jobOf(FRAME_EDGE_PX, FRAME_EDGE_PX);
      const animation = { delaysMs: frameDelays().delay, plays: 1 };
      const ms = await cpuMs(async () => encodeAnimation(await toPixels(frames()), job, animation));
      printFrames(`encode ${format}`, encodedFrameMs, ms, encoded[0]);
    }
  }
}

/** Weighs a format that sharp does not write, by a photograph and a grid of one flat tile, both of 12 megapixels. */
async function weighHeic() {
  const weights = [];
  for (const file of ['corpus/heic/filetype__fixture-heic.heic', 'heic/flat.heic']) {
    const bytes = readFileSync(new URL(`../fixtures/${file}`, import.meta.url));
    const header = readImageHeader(bytes);
    if (header?.format !== 'heic') throw new Error(`Expected a HEIC in ${file}`);
    // The decoder reads no other field of a job.
    const job = /** @type {any} */ ({ originalSize: header });
    const decode = async () =>
      sharp(await decodeHeic(bytes, job))
        .raw()
        .toBuffer();
    weights.push(((await cpuMs(decode)) * 1e6) / (header.widthPx * header.heightPx));
  }
  return [weights[0] ?? Number.NaN, weights[1] ?? Number.NaN];
}

/** Returns typical and minimum nanoseconds per pixel of a step, without the time of its preparation. */
async function weigh(makeReady, step) {
  const nsOf = async (/** @type {Raw} */ raw) => {
    const ready = await makeReady(raw);
    return ((await cpuMs(() => step(ready, raw))) * 1e6) / (raw.width * raw.height);
  };
  const typical = [];
  for (const photo of photos) typical.push(await nsOf(photo));
  return [typical.toSorted((one, other) => one - other)[1] ?? Number.NaN, await nsOf(flat)];
}

/** `format` is one whose decoder supports frames. */
async function cpuMsOfDecoded(format) {
  const bytes = await frames()
    .toFormat(/** @type {'gif'} */ (format), frameDelays())
    .toBuffer();
  return cpuMs(() => sharp(bytes, { animated: true }).raw().toBuffer());
}

async function cpuMsOfComposed() {
  const files = await Promise.all(
    Array.from({ length: FRAMES }, (_, index) =>
      frames()
        .extract({
          left: 0,
          top: index * FRAME_EDGE_PX,
          width: FRAME_EDGE_PX,
          height: FRAME_EDGE_PX,
        })
        .png()
        .toBuffer(),
    ),
  );
  return cpuMs(() => compose(files, { width: FRAME_EDGE_PX, height: FRAME_EDGE_PX }));
}

async function composeGif(gif, { width, height }) {
  const originalSize = { widthPx: width, heightPx: height };
  for await (const _ of decodeGif(gif, { originalSize }, 1));
}

/** Decodes files of one size and composes them, as workers do. */
async function compose(files, { width, height }) {
  const originalSize = { widthPx: width, heightPx: height };
  const placement = /** @type {const} */ ({ leftPx: 0, topPx: 0, blend: 'over', dispose: 'none' });
  const patches = files.map((file) => ({ ...originalSize, ...placement, file }));
  const job = /** @type {import('../dist/pipeline/ports.js').RenderJob} */ ({
    originalSize,
    maxInputPixels: FLAT_EDGE_PX ** 2,
  });
  for await (const _ of composeFrames(patches, job, 1));
}

/** Returns the CPU time of the fastest of three runs, after one that loads code. @param {() => Promise<unknown>} run */
async function cpuMs(run) {
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = cpuUsage();
    await run();
    const { user, system } = cpuUsage(before);
    if (round > 0) times.push((user + system) / 1_000);
  }
  return Math.min(...times);
}

/** Crops and scales the photograph to a square. @param {number} edgePx */
function photograph(edgePx) {
  return toRaw(
    sharp(readFileSync(PHOTO))
      .resize({ width: edgePx, height: edgePx, fit: 'cover' })
      .removeAlpha(),
  );
}

async function toRaw(image) {
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height };
}

function fromRaw({ data, width, height }) {
  return sharp(data, { raw: { width, height, channels: 3 } });
}

/** Draws a pan over the photograph, in small frames. */
function frames() {
  const [{ data, width }] = photos;
  const strip = Buffer.alloc(FRAMES * FRAME_EDGE_PX * FRAME_EDGE_PX * 3);
  for (let row = 0; row < FRAMES * FRAME_EDGE_PX; row += 1) {
    const [frame, y] = [Math.floor(row / FRAME_EDGE_PX), row % FRAME_EDGE_PX];
    const at = ((y * 4 + frame) * width + frame * 4) * 3;
    data.copy(strip, row * FRAME_EDGE_PX * 3, at, at + FRAME_EDGE_PX * 3);
  }
  const raw = {
    width: FRAME_EDGE_PX,
    height: FRAMES * FRAME_EDGE_PX,
    channels: 3,
    pageHeight: FRAME_EDGE_PX,
  };
  return sharp(strip, { raw });
}

function frameDelays() {
  return { delay: Array.from({ length: FRAMES }, () => 20) };
}

function print(name, row, measured) {
  const [typical, least] = measured.map((ns) => ns.toFixed(ns < 10 ? 1 : 0));
  console.log(`${name}: row [${row.join(', ')}] ns, measured [${typical}, ${least}] ns`);
}

function printFrames(name, row, ms, pixelNs) {
  const pixelsMs = (FRAME_EDGE_PX * FRAME_EDGE_PX * pixelNs) / 1e6;
  const frameMs = Math.max(0, ms / FRAMES - pixelsMs).toFixed(1);
  console.log(`${name}, a frame: row ${row} ms, measured ${frameMs} ms`);
}
