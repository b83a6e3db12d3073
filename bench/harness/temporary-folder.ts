import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Gives a folder of its own to what needs one, and removes it at its end, however that comes. */
export async function useTemporaryFolder<Result>(
  use: (folder: string) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-bench-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}
