const MISSING: ReadonlySet<unknown> = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENAMETOOLONG',
  'EISDIR',
  'ELOOP', // a symbolic link, rejected by O_NOFOLLOW
  'ENXIO', // a socket, or a pipe without a reader
]);

/** Returns the code of a failed system call, such as `ENOENT`; `undefined` for any other error. */
export function systemCodeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** Whether a system call failed because its path is not a regular file. */
export function isMissingFile(error: unknown): boolean {
  return MISSING.has(systemCodeOf(error));
}

/** Returns the result of a system call; `undefined` if `isMissingFile`. */
export async function unlessMissing<Result>(call: Promise<Result>): Promise<Result | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
}

export function isRefused(error: unknown): boolean {
  const code = systemCodeOf(error);
  return code === 'EACCES' || code === 'EPERM';
}

/** Whether the disk or a quota has no free blocks or inodes. */
export function isOutOfSpace(error: unknown): boolean {
  const code = systemCodeOf(error);
  return code === 'ENOSPC' || code === 'EDQUOT';
}
