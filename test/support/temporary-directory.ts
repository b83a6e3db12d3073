import { chmod, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { atEnd } from './at-end.ts';

/** Gives the way to write a file into a directory, with the directories above it. */
export const putInto = (directory: string) => async (name: string, bytes: Uint8Array | string) => {
  await mkdir(dirname(join(directory, name)), { recursive: true });
  await writeFile(join(directory, name), bytes);
};

/** A directory of a test, by its real path. */
export type TemporaryDirectory = Awaited<ReturnType<typeof makeTemporaryDirectory>>;

/** Makes an empty directory, which every user may enter, as workers may be another one; its `remove` must be called. */
export async function makeTemporaryDirectory() {
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
export async function useTemporaryDirectory(): Promise<TemporaryDirectory> {
  const directory = await makeTemporaryDirectory();
  atEnd(directory.remove);
  return directory;
}
