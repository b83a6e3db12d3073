import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import sharp from 'sharp';
import { PHOTOS } from './harness/drawings.ts';
import { measureDistance, renderReference, requireLikenessTools } from './harness/likeness.ts';
import {
  formatBytes,
  formatMs,
  formatTable,
  joinParts,
  publishReport,
  quantile,
  sumOf,
} from './harness/report.ts';
import { useTemporaryFolder } from './harness/service.ts';
import { variants as allVariants, type Variant } from './quality/variants.ts';

/* `npm run bench:quality`: see bench/README.md. */

const ORIGINALS = [...PHOTOS, 'fixtures/corpus/jpeg-large/exifr__IMG_20180725_163423.jpg'];
const WIDTHS_PX = [128, 512];
const TIMED_ROUNDS = 5;

/** Part of a variant's name: only these, and the first of each group, with which the others are compared. */
const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } });
const variants = allVariants.filter(
  (variant) =>
    variant.name.includes(values.only) ||
    variant === allVariants.find(({ group }) => group === variant.group),
);

/** One variant of one photograph in one size. */
type Sample = Awaited<ReturnType<typeof measure>>;

async function measure(
  { render }: Variant,
  source: Buffer,
  widthPx: number,
  reference: Buffer,
  folder: string,
) {
  const times: number[] = [];
  let body: Buffer = Buffer.of();
  for (let round = 0; round < TIMED_ROUNDS; round += 1) {
    const before = process.cpuUsage();
    body = await render(source, widthPx);
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1000);
  }
  const distance = await measureDistance(reference, body, folder);
  return { bytes: body.length, cpuMs: quantile(times, 0.5) ?? 0, ...distance };
}

function formatRow(name: string, samples: readonly Sample[], base: readonly Sample[]): string[] {
  const mean = (of: readonly Sample[], measure: keyof Sample): number =>
    sumOf(of, (sample) => sample[measure]) / of.length;
  const ratio = (measure: keyof Sample): number => mean(samples, measure) / mean(base, measure);
  return [
    ...[name, formatBytes(mean(samples, 'bytes')), ratio('bytes').toFixed(3)],
    ...[formatMs(mean(samples, 'cpuMs')), ratio('cpuMs').toFixed(2)],
    ...[mean(samples, 'butteraugli').toFixed(3), mean(samples, 'ssimulacra').toFixed(4)],
  ];
}

requireLikenessTools();
sharp.concurrency(1);
sharp.cache(false);
await useTemporaryFolder(async (folder) => {
  const parts = ['# Quality per byte', `${ORIGINALS.length} photographs; means of them.`];
  for (const widthPx of WIDTHS_PX) {
    const samples = new Map<Variant, Sample[]>(variants.map((variant) => [variant, []]));
    for (const photo of ORIGINALS) {
      const source = readFileSync(photo);
      const reference = await renderReference(source, widthPx);
      for (const [variant, own] of samples) {
        own.push(await measure(variant, source, widthPx, reference, folder));
      }
    }
    for (const group of new Set(variants.map((variant) => variant.group))) {
      const own = [...samples].filter(([variant]) => variant.group === group);
      const base = own[0]?.[1] ?? [];
      const head = ['', 'Bytes', 'ratio', 'CPU', 'ratio', 'Butteraugli', 'SSIMULACRA'];
      const rows = own.map(([{ name }, of]) => formatRow(name, of, base));
      parts.push(`## ${group}, ${widthPx} px`, formatTable(head, rows));
    }
  }
  publishReport('quality.md', joinParts(...parts));
});
