import { readdir, readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';

export interface ExplorerFile {
  readonly mimeType: string;
  readonly body: Buffer;
}

/** Types of files that are served; other files of the folder, such as sources, are not. */
const MIME_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Output folder of the page's build, relative to this module. */
const PAGE_FOLDER = new URL('page/', import.meta.url);

/**
 * Loads the files of the page, once, by name; files of subfolders also by their bare names.
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
