/** What the operating system says when a path names no file of ours. */
const MISSING: ReadonlySet<unknown> = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENAMETOOLONG',
  'EISDIR',
  'ELOOP', // a symbolic link, refused by O_NOFOLLOW
  'ENXIO', // a socket, or a pipe without a reader
]);

/** The code of a failed system call: `ENOENT`; `undefined` for any other error. */
export function systemCodeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** Whether a system call failed because there is no file of ours at its path. */
export function isMissingFile(error: unknown): boolean {
  return MISSING.has(systemCodeOf(error));
}

/** Whether a system call failed for the lack of a right. */
export function isRefused(error: unknown): boolean {
  const code = systemCodeOf(error);
  return code === 'EACCES' || code === 'EPERM';
}
