import { chmod, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { atEnd } from './at-end.ts';

/** Gives the way to write a file into a folder, with the folders above it. */
export const putInto = (folder: string) => async (name: string, bytes: Uint8Array | string) => {
  await mkdir(dirname(join(folder, name)), { recursive: true });
  await writeFile(join(folder, name), bytes);
};

/** A folder of a test, by its real path. */
export type TemporaryFolder = Awaited<ReturnType<typeof makeTemporaryFolder>>;

/** Makes an empty folder, which every user may enter, as workers may be another one; its `remove` must be called. */
export async function makeTemporaryFolder() {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'darkroom-')));
  await chmod(path, 0o755);
  return {
    path,
    put: putInto(path),
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
