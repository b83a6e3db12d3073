import { readdir, readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';

/** A file that is served as it is. */
export interface ExplorerFile {
  readonly mimeType: string;
  readonly body: Buffer;
}

/** What the page is made of; other files of its folder, such as its sources, are not served. */
const MIME_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Where the build puts the page, seen from this module. */
const PAGE_FOLDER = new URL('page/', import.meta.url);

/**
 * Loads the files of the page by their names, once; those of folders below by theirs alone.
 *
 * @throws Error if the folder cannot be read
 */
export async function loadExplorerFiles(): Promise<ReadonlyMap<string, ExplorerFile>> {
  const names = await readdir(PAGE_FOLDER, { recursive: true });
  const files = await Promise.all(
    names.map(async (name) => {
      const mimeType = MIME_TYPES[extname(name)];
      if (mimeType === undefined) return [];
      return [
        [basename(name), { mimeType, body: await readFile(new URL(name, PAGE_FOLDER)) }] as const,
      ];
    }),
  );
  return new Map(files.flat());
}
