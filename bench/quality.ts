import { readFileSync } from 'node:fs';
import sharp, { type ResizeOptions } from 'sharp';
import { outputFormats } from '../src/contract/image-formats.ts';
import { measureDistance, renderReference, requireLikenessTools } from './harness/likeness.ts';
import { PHOTOS } from './harness/originals.ts';
import {
  formatBytes,
  formatMs,
  formatTable,
  joinParts,
  meanOf,
  publishReport,
  quantile,
} from './harness/report.ts';

/* `npm run bench:quality`: see bench/README.md. */

const ORIGINALS = [...PHOTOS, 'fixtures/corpus/jpeg-large/exifr__IMG_20180725_163423.jpg'];
const WIDTHS_PX = [128, 512];
const TIMED_ROUNDS = 5;

/** Deviations from Darkroom's rendering of a photograph. */
interface Recipe {
  readonly resize?: ResizeOptions;
  /** Whether to resize in linear light, approximated by an exponent, instead of sRGB values. */
  readonly isLinear?: boolean;
  readonly encoder?: Readonly<Record<string, number | boolean | string>>;
}

type Recipes = Readonly<Record<string, Recipe>>;

const resizes: Recipes = {
  'a factor of two left to the filter': { resize: { fastShrinkOnLoad: false } },
  'resized by light': { isLinear: true },
  'kernel mitchell': { resize: { kernel: 'mitchell' } },
  'kernel mks2013': { resize: { kernel: 'mks2013' } },
};

/** Creates a recipe for each value of an encoder's setting. */
const steps = (title: string, values: readonly number[], setting: string): Recipes =>
  Object.fromEntries(
    values.map((value) => [`${title} ${value}`, { encoder: { [setting]: value } }]),
  );

/** Recipes by output format; the others are compared with the first, which is Darkroom's. */
const recipes: Readonly<Record<'webp' | 'jpeg' | 'png', Recipes>> = {
  webp: {
    Darkroom: {},
    ...resizes,
    ...steps('effort', [0, 1, 2, 3, 5, 6], 'effort'),
    'smart subsampling': { encoder: { smartSubsample: true } },
  },
  jpeg: {
    Darkroom: {},
    ...resizes,
    '4:4:4': { encoder: { chromaSubsampling: '4:4:4' } },
    MozJPEG: { encoder: { mozjpeg: true } },
  },
  png: {
    Darkroom: {},
    ...steps('level', [2, 6, 9], 'compressionLevel'),
    'level 6, no filter': { encoder: { compressionLevel: 6, adaptiveFiltering: false } },
  },
};

type Sample = Awaited<ReturnType<typeof measureDistance>> & { bytes: number; cpuMs: number };

async function render(
  source: Buffer,
  width: number,
  format: keyof typeof recipes,
  { resize, isLinear = false, encoder }: Recipe,
): Promise<Buffer> {
  // As in the service, a PNG is lossless at any quality except `low`.
  const fastShrinkOnLoad = format !== 'png';
  const image = sharp(source, { failOn: 'warning', sequentialRead: true }).autoOrient();
  if (isLinear) image.gamma(2.2);
  return image
    .resize({ width, fastShrinkOnLoad, ...resize })
    .toColourspace('srgb')
    .toFormat(format, { ...outputFormats[format].qualities.high, ...encoder })
    .toBuffer();
}

/** Renders all photographs by a recipe; returns the means. */
async function measure(
  photos: readonly { readonly source: Buffer; readonly reference: Buffer }[],
  widthPx: number,
  format: keyof typeof recipes,
  recipe: Recipe,
): Promise<Sample> {
  const samples: Sample[] = [];
  for (const { source, reference } of photos) {
    const times: number[] = [];
    let body: Buffer = Buffer.of();
    for (let round = 0; round < TIMED_ROUNDS; round += 1) {
      const before = process.cpuUsage();
      body = await render(source, widthPx, format, recipe);
      const { user, system } = process.cpuUsage(before);
      times.push((user + system) / 1000);
    }
    const distance = await measureDistance(reference, body);
    samples.push({ bytes: body.length, cpuMs: quantile(times, 0.5) ?? 0, ...distance });
  }
  return meanOf(samples);
}

requireLikenessTools();
sharp.concurrency(1);
sharp.cache(false);
const parts = ['# Quality per byte', `${ORIGINALS.length} photographs; means of them.`];
const head = ['', 'Bytes', 'ratio', 'CPU', 'ratio', 'Butteraugli', 'SSIMULACRA'];
for (const widthPx of WIDTHS_PX) {
  const sources = ORIGINALS.map((file) => readFileSync(file));
  const photos = await Promise.all(
    sources.map(async (source) => ({ source, reference: await renderReference(source, widthPx) })),
  );
  for (const format of ['webp', 'jpeg', 'png'] as const) {
    const rows: string[][] = [];
    let base: Sample | undefined;
    for (const [name, recipe] of Object.entries(recipes[format])) {
      const sample = await measure(photos, widthPx, format, recipe);
      base ??= sample;
      rows.push([
        ...[name, formatBytes(sample.bytes), (sample.bytes / base.bytes).toFixed(3)],
        ...[formatMs(sample.cpuMs), (sample.cpuMs / base.cpuMs).toFixed(2)],
        ...[sample.butteraugli.toFixed(3), sample.ssimulacra.toFixed(4)],
      ]);
    }
    parts.push(`## ${format}, ${widthPx} px`, formatTable(head, rows));
  }
}
publishReport('quality.md', joinParts(...parts));
