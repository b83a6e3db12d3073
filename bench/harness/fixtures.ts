import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Reads all files of a folder below `fixtures`. */
export function readFixtures(folder: string) {
  const root = join('fixtures', folder);
  return listFiles(root).map((file) => ({ key: relative(root, file), bytes: readFileSync(file) }));
}

/** Lists all files of a folder, sorted. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
