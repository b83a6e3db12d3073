/** pino's number for `error`. */
const ERROR_LEVEL = 50;

/** Reads all that a service has printed. */
export function readServiceLog(output: string) {
  const log = {
    /** Why a request was refused last, by its path and query. */
    refusals: new Map<string, { readonly code: string; readonly reason: string }>(),
    /** Lines at error level or worse. */
    errors: [] as string[],
    /** What is no line of the log: a decoder's last words, or glibc's, on standard error. */
    stray: new Set<string>(),
    /** How many workers have ended. */
    lostWorkers: 0,
  };
  for (const line of output.split('\n').filter((each) => each.trim() !== '')) {
    let entry: { level: number; msg: string; url?: string; code?: string; reason?: string };
    try {
      entry = JSON.parse(line);
    } catch {
      log.stray.add(line);
      continue;
    }
    const { level, msg, url, code = '', reason = '' } = entry;
    if (level >= ERROR_LEVEL) log.errors.push(line);
    if (/render worker has ended/.test(msg)) log.lostWorkers += 1;
    // Stacks and libvips' repetitions are no part of it.
    if (url !== undefined) log.refusals.set(url, { code, reason: reason.split('\n')[0] ?? '' });
  }
  return log;
}
