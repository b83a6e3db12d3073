import { readFileSync } from 'node:fs';

/** Reads a table of tab-separated values from `fixtures`. Returns an object for each line, by column names. */
export function readFixtureTable(file: string): Record<string, string>[] {
  const lines = readFileSync(`fixtures/${file}`, 'utf8').trimEnd().split('\n');
  const [head = [], ...rows] = lines.map((line) => line.split('\t'));
  return rows.map((cells) => Object.fromEntries(head.map((name, at) => [name, cells[at] ?? ''])));
}
