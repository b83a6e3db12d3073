import { mkdirSync, writeFileSync } from 'node:fs';

/** Beside the code, and not part of the repository. */
export const REPORT_FOLDER = 'bench-report';

/** Prints a report, and writes it to the folder of reports. */
export function publishReport(fileName: string, report: string): void {
  mkdirSync(REPORT_FOLDER, { recursive: true });
  writeFileSync(`${REPORT_FOLDER}/${fileName}`, report);
  process.stdout.write(`${report}\nWritten to ${REPORT_FOLDER}/${fileName}\n`);
}

/** The parts of a report, a blank line between them; `false` is none. */
export function joinParts(...parts: readonly (string | false)[]): string {
  return `${parts.filter((part) => part !== false).join('\n\n')}\n`;
}

/** @throws Error if an option of a command is not a number above 0 */
export function parsePositive(option: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${option}: expected a number above 0`);
  return value;
}

/**
 * A quantile of measured values, by the nearest rank: a value that was measured, never one between.
 *
 * @param share 0.5 for the median, 0.99 for the 99th percentile
 * @returns `undefined` where nothing was measured
 */
export function quantile(values: ArrayLike<number>, share: number): number | undefined {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

export function sumOf<Item>(items: readonly Item[], read: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + read(item), 0);
}

/** A Markdown table. Cells are taken as they are, but for the bar that would end them. */
export function formatTable(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const line = (cells: readonly (string | number)[]): string =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** One thing that a run must show; `isReached` is `undefined` where it could not be judged. */
export type Criterion = readonly [
  name: string,
  wanted: string,
  measured: string,
  isReached: boolean | undefined,
];

/** What a run must show, and whether it did. */
export function formatCriteria(criteria: readonly Criterion[]): string {
  const rows = criteria.map(([name, wanted, measured, isReached]) => [
    name,
    wanted,
    measured,
    isReached === undefined ? 'not judged' : isReached ? 'reached' : 'missed',
  ]);
  return formatTable(['Aim', 'Wanted', 'Measured', 'Result'], rows);
}

/** Milliseconds for people; a dash where nothing was measured. */
export function formatMs(ms: number | undefined): string {
  if (ms === undefined) return '–';
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

/** Quantiles of times, each in a cell. */
export function formatQuantiles(timesMs: readonly number[], shares: readonly number[]): string[] {
  return shares.map((share) => formatMs(quantile(timesMs, share)));
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Bytes for people, in the unit that gives a number from 1 to 1023: `1.5 GiB`. */
export function formatBytes(bytes: number | undefined): string {
  if (bytes === undefined) return '–';
  const unit = Math.floor(Math.log2(Math.max(1, Math.abs(bytes))) / 10);
  const power = Math.min(unit, BYTE_UNITS.length - 1);
  const value = bytes / 2 ** (10 * power);
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${BYTE_UNITS[power]}`;
}

/** A share for people: `97.3 %`; a dash for a share of nothing. */
export function formatShare(part: number, whole: number): string {
  return whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`;
}

/** Values with their counts, the most frequent first: `200 × 12, 503 × 2`. */
export function formatCounts(values: readonly (string | number)[]): string {
  const counts = new Map<string | number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const sorted = [...counts].sort(([, one], [, other]) => other - one);
  return sorted.map(([value, count]) => `${value} × ${count}`).join(', ') || '–';
}
