import { readFileSync } from 'node:fs';

/** Reads which attacks do harm in the sandbox `column`, from the table of docs/security.md that has `firstColumn`. */
export function readHarm(
  firstColumn: string,
  column: string,
  asRoot: boolean,
): Record<string, boolean> {
  const text = readFileSync('docs/security.md', 'utf8');
  const table = new RegExp(`^\\| \\| ${firstColumn} \\|.*(?:\\n\\|.*)+`, 'm').exec(text)?.[0] ?? '';
  const rows = table.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  const at = rows[0]?.indexOf(column) ?? -1;
  if (at < 0) throw new Error(`The document has no column "${column}".`);
  return Object.fromEntries(
    rows.slice(2).map((cells) => {
      const cell = cells[at];
      return [cells[1] ?? '', cell === 'yes' || cell === (asRoot ? 'as root' : 'not as root')];
    }),
  );
}
