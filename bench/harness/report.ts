import { mkdirSync, writeFileSync } from 'node:fs';

/** Directory of reports and of the servers' logs; Git ignores it. */
export const REPORT_DIRECTORY = 'bench-report';

/** Prints a report, and writes it into the directory of reports; a missed criterion makes the exit status 1. */
export function publishReport(
  fileName: string,
  report: string,
  criteria: readonly Criterion[] = [],
): void {
  mkdirSync(REPORT_DIRECTORY, { recursive: true });
  writeFileSync(`${REPORT_DIRECTORY}/${fileName}`, report);
  process.stdout.write(`${report}\nWritten to ${REPORT_DIRECTORY}/${fileName}\n`);
  if (criteria.some(([, , , isReached]) => isReached === false)) process.exitCode = 1;
}

/** Joins the parts of a report with a blank line between them; skips `false`. */
export function joinParts(...parts: readonly (string | false)[]): string {
  return `${parts.filter((part) => part !== false).join('\n\n')}\n`;
}

/** @throws Error if an option of a command is not a number above 0 */
export function parsePositive(option: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${option}: expected a number above 0`);
  return value;
}

/** Returns a quantile (0.5: the median) by the nearest rank: always a measured value; `undefined` without values. */
export function quantile(values: readonly number[], fraction: number): number | undefined {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(fraction * sorted.length) - 1)];
}

export function sumOf<Item>(items: readonly Item[], read: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + read(item), 0);
}

/** Returns the mean of each measure; all items must have the same ones. */
export function meanOf<Item extends Readonly<Record<string, number>>>(
  items: readonly Item[],
): Item {
  const measures = Object.keys(items[0] ?? {});
  const means = measures.map((name) => [
    name,
    sumOf(items, (item) => item[name] ?? Number.NaN) / items.length,
  ]);
  return Object.fromEntries(means) as Item;
}

/** Formats a Markdown table; escapes bars in cells. */
export function formatTable(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const line = (cells: readonly (string | number)[]): string =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Requirement of a run; `isReached` is `undefined` if the run could not check it. */
export type Criterion = readonly [
  name: string,
  wanted: string,
  measured: string,
  isReached: boolean | undefined,
];

export function formatCriteria(criteria: readonly Criterion[]): string {
  const rows = criteria.map(([name, wanted, measured, isReached]) => [
    ...[name, wanted, measured],
    isReached === undefined ? 'not checked' : isReached ? 'reached' : 'missed',
  ]);
  return formatTable(['', 'Wanted', 'Measured', 'Result'], rows);
}

/** Formats milliseconds; `undefined` is a dash. */
export function formatMs(ms: number | undefined): string {
  if (ms === undefined) return '–';
  return `${ms.toFixed(ms < 1 ? 2 : ms < 10 ? 1 : 0)} ms`;
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB'];

/** Formats bytes as a number from 1 to 1023 with its unit: `1.5 GiB`; `undefined` is a dash. */
export function formatBytes(bytes: number | undefined): string {
  if (bytes === undefined) return '–';
  const unit = Math.floor(Math.log2(Math.max(1, bytes)) / 10);
  const power = Math.min(unit, BYTE_UNITS.length - 1);
  const value = bytes / 2 ** (10 * power);
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${BYTE_UNITS[power]}`;
}

export function formatPercent(fraction: number): string {
  return `${(100 * fraction).toFixed(1)} %`;
}

/** Formats values with their counts, the most frequent first: `200 × 12, 503 × 2`. */
export function formatCounts(values: readonly (string | number)[]): string {
  const counts = new Map<string | number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const sorted = [...counts].sort(([, one], [, other]) => other - one);
  return sorted.map(([value, count]) => `${value} × ${count}`).join(', ') || '–';
}
