import { readFileSync } from 'node:fs';

/** Reads tab-separated values of `fixtures`: a record per line, by the names of columns. */
export function readFixtureTable(file: string): Record<string, string>[] {
  const lines = readFileSync(`fixtures/${file}`, 'utf8').trimEnd().split('\n');
  const [head = [], ...rows] = lines.map((line) => line.split('\t'));
  return rows.map((cells) => Object.fromEntries(head.map((name, at) => [name, cells[at] ?? ''])));
}
