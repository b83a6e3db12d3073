import { chmod, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { atEnd } from './at-end.ts';

/** Returns a function that writes files below a directory, and creates parent directories. */
export const putInto = (directory: string) => async (name: string, bytes: Uint8Array | string) => {
  await mkdir(dirname(join(directory, name)), { recursive: true });
  await writeFile(join(directory, name), bytes);
};

export type TemporaryDirectory = Awaited<ReturnType<typeof makeTemporaryDirectory>>;

/** Creates an empty directory; call `remove`. Every user can enter it, because workers can run as another user. */
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

/** Creates an empty directory until the end of the test or, outside of a test, of the file. */
export async function useTemporaryDirectory(): Promise<TemporaryDirectory> {
  const directory = await makeTemporaryDirectory();
  atEnd(directory.remove);
  return directory;
}
