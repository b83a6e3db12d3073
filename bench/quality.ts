import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import sharp from 'sharp';
import { PHOTOS } from './harness/drawings.ts';
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
import { renderReference } from './quality/reference.ts';
import { variants as allVariants, type Variant } from './quality/variants.ts';

/* `npm run bench:quality`: see bench/README.md. */

const ORIGINALS = [...PHOTOS, 'fixtures/corpus/jpeg-large/exifr__IMG_20180725_163423.jpg'];
const WIDTHS_PX = [128, 512];
const TIMED_ROUNDS = 5;
const TOOLS = ['butteraugli_main', 'ssimulacra_main'].map((name) => `/usr/bin/${name}`);

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
  reference: string,
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
  const decoded = join(folder, 'decoded.png');
  writeFileSync(decoded, await sharp(body).png({ compressionLevel: 1 }).toBuffer());
  const [butteraugliText = '', ssimulacraText = ''] = TOOLS.map((tool) =>
    execFileSync(tool, [reference, decoded], { encoding: 'utf8', stdio: 'pipe' }),
  );
  const butteraugli = Number(/3-norm: ([\d.]+)/.exec(butteraugliText)?.[1]);
  const ssimulacra = Number(ssimulacraText.trim().split(/\s+/)[0]);
  if (!(butteraugli >= 0) || !(ssimulacra >= 0)) throw new Error('The tools print something else.');
  return {
    bytes: body.length,
    cpuMs: quantile(times, 0.5) ?? 0,
    /** Distance, 3-norm: 0 means equal, 1 just noticeable. */
    butteraugli,
    /** Distance: 0 means equal. */
    ssimulacra,
  };
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

if (!TOOLS.every((tool) => existsSync(tool))) {
  throw new Error(`needs ${TOOLS.join(' and ')} (Debian: libjxl-devtools)`);
}
sharp.concurrency(1);
sharp.cache(false);
await useTemporaryFolder(async (folder) => {
  const parts = ['# Quality per byte', `${ORIGINALS.length} photographs; means of them.`];
  const reference = join(folder, 'reference.png');
  for (const widthPx of WIDTHS_PX) {
    const samples = new Map<Variant, Sample[]>(variants.map((variant) => [variant, []]));
    for (const photo of ORIGINALS) {
      const source = readFileSync(photo);
      writeFileSync(reference, await renderReference(source, widthPx));
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
