import { walkFolder } from '../filesystem/folder-walk.ts';
import { GentlePace } from '../filesystem/throttle.ts';

/** What file systems give out at a time, in bytes: what the smallest file or folder takes of the disk. */
const BLOCK_BYTES = 4096;

/** Age classes per doubling: the ages in one differ by 4 %. */
const CLASSES_PER_DOUBLING = 16;

/** Enough for 2³² seconds, 136 years; what is older is in the last one. */
const CLASS_COUNT = 32 * CLASSES_PER_DOUBLING + 1;

/** What a folder takes of the disk, in bytes; more where there are very many entries in one. */
export const FOLDER_COST_BYTES = BLOCK_BYTES;

/**
 * What a file takes of the disk, in bytes: its length in whole blocks. Not what the system says is
 * allocated, which some file systems (ZFS, btrfs) decide long after the write.
 */
export function fileCostBytes(sizeBytes: number): number {
  return Math.ceil(sizeBytes / BLOCK_BYTES) * BLOCK_BYTES;
}

/** What there is in a folder, without a list of it: some 4 KiB, however many files there are. */
export interface FolderSurvey {
  /** When it began, in milliseconds since 1970: what ages are counted from. */
  readonly atMs: number;
  readonly files: number;
  /** What files and folders take of the disk. */
  readonly costBytes: number;
  /** What files take, by age class: the youngest first. */
  readonly costByAge: Float64Array;
}

/** Which files go: all that are older than a class, and of the class itself so many bytes. */
export interface AgeCut {
  readonly ageClass: number;
  readonly classBytes: number;
}

/**
 * Counts what is below a folder, gently.
 *
 * @param onRefused is told of folders that must not be read; they are not counted
 * @throws Error of a system call; `signal.reason`
 */
export async function surveyFolder(
  folder: string,
  signal: AbortSignal,
  onRefused: (path: string, error: unknown) => void,
): Promise<FolderSurvey> {
  const atMs = Date.now();
  const costByAge = new Float64Array(CLASS_COUNT);
  let files = 0;
  let costBytes = 0;
  const visitor = {
    file: (_path: string, sizeBytes: number, mtimeMs: number): void => {
      const cost = fileCostBytes(sizeBytes);
      const ageClass = ageClassOf(atMs - mtimeMs);
      costByAge[ageClass] = (costByAge[ageClass] ?? 0) + cost;
      files += 1;
      costBytes += cost;
    },
    folder: (): void => {
      costBytes += FOLDER_COST_BYTES;
    },
    refused: onRefused,
  };
  await walkFolder(folder, visitor, { signal, pace: new GentlePace() });
  return { atMs, files, costBytes, costByAge };
}

/** Class of an age in milliseconds; what comes from the future is as young as can be. */
export function ageClassOf(ageMs: number): number {
  const doublings = Math.log2(1 + Math.max(0, ageMs) / 1000);
  return Math.min(CLASS_COUNT - 1, Math.floor(doublings * CLASSES_PER_DOUBLING));
}

/**
 * The cut that frees about so many bytes, the oldest first; all files, if there are no more. Folders
 * are expected to go with their files, in proportion.
 */
export function cutByAge({ costBytes, costByAge }: FolderSurvey, excessBytes: number): AgeCut {
  const fileBytes = costByAge.reduce((sum, bytes) => sum + bytes, 0);
  let missingBytes = excessBytes * (fileBytes / Math.max(1, costBytes));
  for (let ageClass = CLASS_COUNT - 1; ageClass >= 0; ageClass -= 1) {
    const classBytes = costByAge[ageClass] ?? 0;
    if (classBytes >= missingBytes) return { ageClass, classBytes: missingBytes };
    missingBytes -= classBytes;
  }
  return { ageClass: 0, classBytes: missingBytes };
}
