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

/** How the service speaks of a render that has cost it a worker. */
export const LOST_WORKER = /\bworker (has )?(ended|died|was killed)/i;

/** pino's number for `error`. */
const ERROR_LEVEL = 50;

/** Reads the service's log as it comes. */
export class ServiceLog {
  #rest = '';
  readonly #refusals = new Map<string, Refusal>();
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

  /** Why a target was refused last; by the path and query that were asked for. */
  refusalOf(target: string): Refusal | undefined {
    return this.#refusals.get(target);
  }

  /** Targets whose render has cost a worker, crashed or killed at a limit. */
  get costly(): readonly { readonly target: string; readonly refusal: Refusal }[] {
    return [...this.#refusals]
      .filter(([, refusal]) => isCostly(refusal))
      .map(([target, refusal]) => ({ target, refusal }));
  }

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
    if (entry.url !== undefined) {
      // Stacks and libvips' repetitions are no part of it.
      const reason = entry.reason?.split('\n')[0] ?? '';
      this.#refusals.set(entry.url, { code: entry.code ?? '', reason });
    }
  }
}

function isCostly({ reason, code }: Refusal): boolean {
  return LOST_WORKER.test(reason) || code === 'TRANSFORM_TIMEOUT';
}
