/** A Markdown table. Cells are taken as they are, but for the bar that would end them. */
export function formatTable(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const line = (cells: readonly (string | number)[]): string =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Milliseconds for people; a dash where nothing was measured. */
export function formatMs(ms: number | undefined): string {
  if (ms === undefined) return '–';
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

/** Bytes in MiB for people; a dash where nothing was measured. */
export function formatMebibytes(bytes: number | undefined): string {
  return bytes === undefined ? '–' : `${Math.round(bytes / 2 ** 20)} MiB`;
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Bytes for people, in the unit that gives a number from 1 to 1023: `1.5 GiB`. */
export function formatBytes(bytes: number): string {
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
