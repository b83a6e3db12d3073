import { rmdir, unlink } from 'node:fs/promises';
import { walkFolder } from '../filesystem/folder-walk.ts';
import { GentlePace } from '../filesystem/throttle.ts';
import { isMissingFile, systemCodeOf } from '../missing-file.ts';
import { type AgeCut, ageClassOf, FOLDER_COST_BYTES, fileCostBytes } from './folder-scan.ts';

/** What came of a clearing. */
export interface Clearing {
  /** How many were removed, by whomever. */
  readonly files: number;
  /** What could not be removed, and the error of the first. */
  readonly refused: { readonly count: number; readonly first: unknown };
}

/**
 * Removes the files older than a cut, and every folder that is empty then; gently.
 *
 * A file that is read meanwhile is kept where the reader has touched it before the walk came by. One
 * that another process has removed counts as freed: the survey has seen it.
 *
 * @param surveyedAtMs what ages are counted from: `FolderSurvey.atMs`
 * @param options `onFreed` is told what each file and folder took of the disk, in bytes
 * @throws Error of a system call other than a removal; `options.signal.reason`
 */
export async function clearFolder(
  folder: string,
  surveyedAtMs: number,
  { ageClass, classBytes }: AgeCut,
  options: { readonly signal: AbortSignal; readonly onFreed: (costBytes: number) => void },
): Promise<Clearing> {
  let files = 0;
  let classBytesLeft = classBytes;
  let refused: Clearing['refused'] = { count: 0, first: undefined };
  const note = (error: unknown): void => {
    refused = { count: refused.count + 1, first: refused.first ?? error };
  };
  const visitor = {
    file: async (path: string, sizeBytes: number, mtimeMs: number): Promise<void> => {
      const fileClass = ageClassOf(surveyedAtMs - mtimeMs);
      const isOfCut = fileClass === ageClass && classBytesLeft > 0;
      if (fileClass <= ageClass && !isOfCut) return;
      if (!(await isRemoved(unlink(path), note))) return;
      const costBytes = fileCostBytes(sizeBytes);
      options.onFreed(costBytes);
      files += 1;
      if (isOfCut) classBytesLeft -= costBytes;
    },
    folder: async (path: string): Promise<void> => {
      if (await isRemoved(rmdir(path), note)) options.onFreed(FOLDER_COST_BYTES);
    },
    refused: (_path: string, error: unknown): void => note(error),
  };
  await walkFolder(folder, visitor, { signal: options.signal, pace: new GentlePace() });
  return { files, refused };
}

/** Whether it is gone; a folder that is not empty stays, and is nothing to be told. */
async function isRemoved(call: Promise<void>, note: (error: unknown) => void): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (isMissingFile(error)) return true;
    const code = systemCodeOf(error);
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') note(error);
    return false;
  }
}
