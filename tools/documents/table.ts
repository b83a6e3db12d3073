export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [formatRow(head), `|${'---|'.repeat(head.length)}`, ...rows.map(formatRow)].join('\n');
}

function formatRow(cells: readonly string[]): string {
  return `|${cells.map((cell) => (cell === '' ? ' |' : ` ${cell} |`)).join('')}`;
}

/** Formats text as code. */
export function code(text: string): string {
  return `\`${text}\``;
}
