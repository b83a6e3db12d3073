import {
  DEFAULT_WEBP_EFFORT,
  type EncoderSettings,
  largeStill,
  outputFormats,
} from '../../../contract/image-formats.ts';
import type { Animation, Size } from '../../../formats/image-facts.ts';
import {
  countLaterFrameBytes,
  restoreAnimation,
  SENTINEL_DELAY_MS,
} from '../../../formats/webp/webp-animation.ts';
import type { RenderJob } from '../../../pipeline/ports.ts';
import { fromPixels, type Pixels } from '../pixels.ts';
import { chooseForm, estimateRatio, type Smear, sampleStill, smearOf } from './still-form.ts';

/** Small results, by their longer edge: chroma at half the resolution is visible here. */
const SMALL_PX = 64;
const TINY_PX = 32;

/** Factors by which the lossless form may be larger at `high`: small drawings look better (bench/RESULTS.md). */
const WORTH: Readonly<Record<Smear, { readonly tiny: number; readonly small: number }>> = {
  'cut-out': { tiny: 2.8, small: 2 },
  drawing: { tiny: 2.2, small: 1.25 },
  none: { tiny: 1, small: 1 },
};

/** Effort of a small still's lossless form: a third of the time of effort 4, for 1.3 % more bytes (bench/RESULTS.md). */
const STILL_EFFORT = 1;

/** Estimated ratio from which no sample of an animation is encoded, and colours up to which it is. */
const TOO_LARGE_TO_TRY = 3;
const COLOURS_TO_TRY = 256;

/** Factor by which more frames are encoded than should suffice to show that the lossless form is larger. */
const PROOF_RESERVE = 1.2;

/** Ratios of estimated lossless to lossy bytes: up to the first, lossless is taken; from the second, lossy. */
const CLEARLY_SMALLER = 0.8;
const CLEARLY_LARGER = 2;

/** Pixels of all frames beyond which an animation of many colours is encoded only once. */
const MAX_BOTH_PIXELS = 4_000_000;

/** Frames beyond this size are compared by every seventh byte: 7 has no common factor with the bytes of a pixel. */
const MAX_COMPARED_BYTES = 65_536;
const STEP_BYTES = 7;

/** Frames per sample, and most samples. */
const FRAMES_PER_SAMPLE = 64;
const MAX_SAMPLES = 4;

function losslessForm({ encoder }: RenderJob): EncoderSettings {
  const { effort = DEFAULT_WEBP_EFFORT } = encoder;
  return { ...outputFormats.webp.qualities.lossless, effort };
}

/**
 * Encodes a WebP. If the quality is lossy and the image is a drawing, its lossless form may be smaller, and always
 * looks at least as good: an estimate from the pixels of a still decides, or a sample of the frames of an animation.
 *
 * @param strip frames, one below the other
 * @param animation `undefined` for a single frame, a still
 * @param hasFewColours whether the contract bounds the bytes of the animation by those of its lossless form
 */
export async function encodeWebp(
  strip: Pixels,
  job: RenderJob,
  animation: Animation | undefined,
  hasFewColours = false,
): Promise<Uint8Array> {
  const { size, encoder } = job;
  if (animation !== undefined) return encodeFrames(strip, job, animation, hasFewColours);
  const encode = (settings: EncoderSettings): Promise<Uint8Array> =>
    encodeAs(strip, size, settings, undefined);
  return encoder.lossless === true
    ? encode(losslessStill(job, encoder))
    : encodeStill(strip, job, encode);
}

type Encode = (settings: EncoderSettings) => Promise<Uint8Array>;

/** Returns the settings of a lossless still, with less effort if it is large. */
function losslessStill({ size }: RenderJob, settings: EncoderSettings): EncoderSettings {
  const large = largeStill('webp', size.widthPx * size.heightPx)?.settings;
  if (large === undefined) return settings;
  const effort = Math.min(Number(settings.effort ?? DEFAULT_WEBP_EFFORT), large.effort);
  return { ...settings, ...large, effort };
}

/** Encodes a still once; in both forms where the estimate is unsure (contract §3: one still in ten at most). */
async function encodeStill(frame: Pixels, job: RenderJob, encode: Encode): Promise<Uint8Array> {
  const sample = sampleStill(frame);
  const worth = worthOf(job, smearOf(sample));
  const form = chooseForm(sample, estimateRatio(sample, frame, qualityOf(job)) / worth);
  if (form === 'lossy') return encode(job.encoder);
  const effort = Math.min(Number(job.encoder.effort ?? DEFAULT_WEBP_EFFORT), STILL_EFFORT);
  // Colours under transparent pixels are dropped: they are invisible.
  const lossless = await encode(losslessStill(job, { lossless: true, exact: false, effort }));
  if (form === 'lossless') return lossless;
  const lossy = await encode(job.encoder);
  return lossless.length <= lossy.length * worth ? lossless : lossy;
}

async function encodeFrames(
  strip: Pixels,
  job: RenderJob,
  animation: Animation,
  hasFewColours: boolean,
): Promise<Uint8Array> {
  const { size, encoder } = job;
  const { delaysMs } = animation;
  const encode = (settings: EncoderSettings, count = delaysMs.length): Promise<Uint8Array> => {
    const frames = takeFrames(strip, size, 0, count);
    return encodeAs(frames, size, settings, { ...animation, delaysMs: delaysMs.slice(0, count) });
  };
  if (encoder.lossless === true) return encode(encoder);
  const ratio = await compareSample(strip, job);
  const isLarge = strip.widthPx * strip.heightPx > MAX_BOTH_PIXELS;
  // The exact bytes of `lossless`: without `exact`, the differences of frames may take up to 3 % more.
  const settings = losslessForm(job);
  if (ratio <= (isLarge ? 1 : CLEARLY_SMALLER)) return encode(settings);
  const lossy = await encode(encoder);
  const isClearlyLarger = ratio >= CLEARLY_LARGER || isLarge;
  if (isClearlyLarger && !hasFewColours) return lossy;
  // The contract demands proof, not an estimate. The first frames suffice if they alone are larger without loss: an
  // encoder of animations never changes earlier frames for the sake of later ones.
  const maxBytes = lossy.length * (isClearlyLarger ? 1 : worthOf(job, 'drawing'));
  const enough = Math.ceil((PROOF_RESERVE * delaysMs.length * maxBytes) / (lossy.length * ratio));
  const count = Math.max(2, enough);
  if (count < delaysMs.length && (await encode(settings, count)).length > maxBytes) return lossy;
  const lossless = await encode(settings);
  return lossless.length <= maxBytes ? lossless : lossy;
}

/**
 * Whether a still WebP is lossy whatever its pixels are, and so can be decoded and encoded in one pipeline: an exact form
 * would keep the losses of its original (bench/RESULTS.md).
 */
export function isSurelyLossy({ isLossy, format, encoder }: RenderJob): boolean {
  return isLossy === true && format === 'webp' && encoder.lossless !== true;
}

function qualityOf({ encoder }: RenderJob): 'high' | 'low' {
  return encoder.quality === outputFormats.webp.qualities.high.quality ? 'high' : 'low';
}

function worthOf(job: RenderJob, smear: Smear): number {
  const edgePx = Math.max(job.size.widthPx, job.size.heightPx);
  if (qualityOf(job) === 'low' || edgePx > SMALL_PX) return 1;
  return WORTH[smear][edgePx <= TINY_PX ? 'tiny' : 'small'];
}

/**
 * Estimates the ratio of lossless to lossy bytes of a whole animation; of a frame alone if it is so high that the lossless
 * form is hardly smaller.
 *
 * Encodes pairs of frames in both forms. A pair shows the cost of its first frame, which is sent whole, and the cost of
 * its second frame, which grows with its changed share. An animation has the first cost once, and the second for all
 * changes.
 */
async function compareSample(strip: Pixels, job: RenderJob): Promise<number> {
  const { size } = job;
  const changes = measureChanges(strip, size);
  const changed = changes.reduce((sum, change) => sum + change, 0);
  const samples = pickSamples(changes, changed);
  const estimate = async (settings: EncoderSettings): Promise<number> => {
    let bytes = 0;
    for (const index of samples) {
      const pair = takeFrames(strip, size, index - 1, 2);
      const encoded = await encodeAs(pair, size, settings, { delaysMs: [0, 0], plays: 0 });
      const later = countLaterFrameBytes(encoded);
      const change = changes[index] ?? 0;
      bytes += encoded.length - later + (change === 0 ? 0 : (later / change) * changed);
    }
    return bytes / samples.length;
  };
  const middle = samples[Math.floor(samples.length / 2)] ?? 0;
  const frame = takeFrames(strip, size, middle - 1, 1);
  const sample = sampleStill(frame);
  const ratio = estimateRatio(sample, frame, qualityOf(job));
  if (ratio > TOO_LARGE_TO_TRY && sample.colours > COLOURS_TO_TRY) return ratio;
  return (await estimate(losslessForm(job))) / (await estimate(job.encoder));
}

/** Returns the share of each frame, of two or more, that differs from the previous one; 0 for the first. */
function measureChanges({ data, widthPx, channels }: Pixels, size: Size): readonly number[] {
  const frameBytes = widthPx * size.heightPx * channels;
  const step = frameBytes > MAX_COMPARED_BYTES ? STEP_BYTES : 1;
  const changes = [0];
  for (let start = frameBytes; start < data.length; start += frameBytes) {
    let unlike = 0;
    for (let at = start; at < start + frameBytes; at += step) {
      if (data[at] !== data[at - frameBytes]) unlike += 1;
    }
    changes.push(unlike / Math.ceil(frameBytes / step));
  }
  return changes;
}

/**
 * Picks frames, never the first, that are spread evenly over the sum of all changes: a few large changes may take more
 * bytes than all others together.
 */
function pickSamples(changes: readonly number[], total: number): readonly number[] {
  const count = Math.min(MAX_SAMPLES, 1 + Math.floor(changes.length / FRAMES_PER_SAMPLE));
  const samples: number[] = [];
  let passed = 0;
  for (const [index, change] of changes.entries()) {
    passed += change;
    if (change > 0 && passed >= ((samples.length + 0.5) / count) * total) samples.push(index);
  }
  return samples.length > 0 ? samples : [1];
}

function takeFrames(
  { data, widthPx, channels }: Pixels,
  { heightPx }: Size,
  first: number,
  count: number,
): Pixels {
  const frameBytes = widthPx * heightPx * channels;
  const part = data.subarray(first * frameBytes, (first + count) * frameBytes);
  return { data: part, widthPx, heightPx: part.length / (widthPx * channels), channels };
}

/**
 * Encodes with an artificial timing, since libvips' encoder rounds delays up and merges equal frames, and then writes
 * the true timing into the file.
 */
async function encodeAs(
  strip: Pixels,
  size: Size,
  settings: EncoderSettings,
  animation: Animation | undefined,
): Promise<Uint8Array> {
  if (animation === undefined) return fromPixels(strip).webp(settings).toBuffer();
  const delay = animation.delaysMs.map(() => SENTINEL_DELAY_MS);
  const loop = animation.plays === 1 ? 1 : 0;
  const encoded = await fromPixels(strip, size)
    .webp({ ...settings, delay, loop })
    .toBuffer();
  return restoreAnimation(encoded, animation);
}
