/** What the service says of a request that it did not serve. */
interface Refusal {
  readonly code: string;
  readonly reason: string;
}

interface Entry extends Partial<Refusal> {
  readonly level: number;
  readonly msg: string;
  readonly url?: string;
}

/** pino's number for `error`. */
const ERROR_LEVEL = 50;

/** Reads all that a service has printed. */
export function readServiceLog(output: string) {
  const log = {
    /** Why a request was refused last, by its path and query. */
    refusals: new Map<string, Refusal>(),
    /** Lines at error level or worse. */
    errors: [] as string[],
    /** What is no line of the log: a decoder's last words, or glibc's, on standard error. */
    stray: new Set<string>(),
    /** How many workers have ended. */
    lostWorkers: 0,
  };
  for (const line of output.split('\n').filter((each) => each.trim() !== '')) {
    let entry: Entry;
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

/** Whether a render has cost a worker: it crashed, or was killed at a limit. */
export function hasLostWorker({ reason }: Refusal): boolean {
  return /\bworker (has )?(ended|died|was killed)/i.test(reason);
}
