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

/** Values with their counts, the most frequent first: `200 × 12, 503 × 2`. */
export function formatCounts(values: readonly (string | number)[]): string {
  const counts = new Map<string | number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const sorted = [...counts].sort(([, one], [, other]) => other - one);
  return sorted.map(([value, count]) => `${value} × ${count}`).join(', ') || '–';
}
