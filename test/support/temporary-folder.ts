import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { atEnd } from './at-end.ts';

/** A folder of a test, by its real path. */
export type TemporaryFolder = Awaited<ReturnType<typeof makeTemporaryFolder>>;

/** Makes an empty folder; its `remove` must be called. */
export async function makeTemporaryFolder() {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'darkroom-')));
  return {
    path,
    /** Writes a file, with the folders above it. */
    put: async (name: string, bytes: Uint8Array | string): Promise<void> => {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await writeFile(join(path, name), bytes);
    },
    list: async (): Promise<readonly string[]> => {
      const entries = await readdir(path, { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => !entry.isDirectory())
        .map(({ parentPath, name }) => relative(path, join(parentPath, name)))
        .sort();
    },
    remove: () => rm(path, { recursive: true, maxRetries: 3 }),
  };
}

/** The same, until the end of the test, or of the file's tests. */
export async function useTemporaryFolder(): Promise<TemporaryFolder> {
  const folder = await makeTemporaryFolder();
  atEnd(folder.remove);
  return folder;
}
