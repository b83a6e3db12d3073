/** pino's number for `error`. */
const ERROR_LEVEL = 50;

/** Parses the output of a service. */
export function readServiceLog(output: string) {
  const log = {
    /** Reason of the last error of a request, by path and query. */
    refusals: new Map<string, { readonly code: string; readonly reason: string }>(),
    /** Lines at level error and above. */
    errors: [] as string[],
    /** Lines that are not log entries, such as messages of a decoder or glibc on standard error. */
    stray: new Set<string>(),
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
    // Without stacks and repeated messages of libvips.
    if (url !== undefined) log.refusals.set(url, { code, reason: reason.split('\n')[0] ?? '' });
  }
  return log;
}
