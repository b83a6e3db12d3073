import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Reads all files of a directory below `fixtures`. */
export function readFixtures(directory: string) {
  const root = join('fixtures', directory);
  return listFiles(root).map((file) => ({ key: relative(root, file), bytes: readFileSync(file) }));
}

/** Lists all files of a directory, sorted. */
export function listFiles(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
