import { readFileSync } from 'node:fs';

/**
 * Reads a table of attacks in docs/security.md: by attack, by column, what the document says of it.
 *
 * @param firstColumn heading of the first column after that of the attacks
 */
export function readAttackTable(firstColumn: string): Map<string, Map<string, string>> {
  const text = readFileSync('docs/security.md', 'utf8');
  const table = new RegExp(`^\\| \\| ${firstColumn} \\|.*(?:\\n\\|.*)+`, 'm');
  const lines = table.exec(text)?.[0].split('\n') ?? [];
  const [[, ...columns] = [], , ...rows] = lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return new Map(
    rows.map(([name = '', ...cells]) => [
      name,
      new Map(cells.map((cell, at) => [columns[at] ?? '', cell])),
    ]),
  );
}
