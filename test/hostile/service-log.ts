/** What the service says of a request that it did not serve. */
export interface Refusal {
  readonly code: string;
  readonly reason: string;
}

interface Entry {
  readonly level: number;
  readonly msg: string;
  readonly url?: string;
  readonly code?: string;
  readonly reason?: string;
}

/** pino's number for `error`. */
const ERROR_LEVEL = 50;

/** Reads the service's log as it comes. */
export class ServiceLog {
  #rest = '';
  /** Why a request was refused last, by its path and query. */
  readonly refusals = new Map<string, Refusal>();
  /** Lines at error level or worse. */
  readonly errors: string[] = [];
  /** What is no line of the log: a decoder's last words, or glibc's, on standard error. */
  readonly stray: string[] = [];
  /** How many workers have ended. */
  lostWorkers = 0;

  readonly read = (text: string): void => {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') this.#readLine(line);
  };

  #readLine(line: string): void {
    let entry: Entry;
    try {
      entry = JSON.parse(line) as Entry;
    } catch {
      this.stray.push(line);
      return;
    }
    if (entry.level >= ERROR_LEVEL) this.errors.push(line);
    if (/render worker has ended/.test(entry.msg)) this.lostWorkers += 1;
    if (entry.url === undefined) return;
    // Stacks and libvips' repetitions are no part of it.
    const reason = entry.reason?.split('\n')[0] ?? '';
    this.refusals.set(entry.url, { code: entry.code ?? '', reason });
  }
}

/** Whether a render has cost a worker: it crashed, or was killed at a limit. */
export function hasLostWorker({ reason }: Refusal): boolean {
  return /\bworker (has )?(ended|died|was killed)/i.test(reason);
}
