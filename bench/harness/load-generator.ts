import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import type { Load, LoadResult } from './load.ts';

/** What the process says of a load: what came of it, or why nothing did. */
export type LoadReport = LoadResult | { readonly failure: string };

/** A process that drives loads, seen from its parent. */
export class LoadGenerator {
  readonly #child: ChildProcess;
  /** Whether it runs before other processes. */
  readonly isPreferred: boolean;

  /**
   * @param wish `preferred`: to run before other processes, so that it measures them, and not how long
   *   it waits for a core itself; it needs the right to that (root, as a rule)
   */
  constructor(wish: 'equal' | 'preferred') {
    this.#child = fork(new URL('./load-process.js', import.meta.url), {
      serialization: 'advanced',
      // A session of its own, since Linux shares cores out between sessions before it looks at priorities.
      detached: true,
    });
    this.isPreferred = wish === 'preferred' && prefer(this.#child.pid ?? 0);
  }

  /**
   * Drives a load; one at a time.
   *
   * @throws Error as the load does, or if the process ends before
   */
  run(load: Load): Promise<LoadResult> {
    const child = this.#child;
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error('The load generator has ended.'));
      child.once('exit', fail);
      child.once('message', (report: LoadReport) => {
        child.off('exit', fail);
        if ('failure' in report) reject(new Error(report.failure));
        else resolve(report);
      });
      child.send(load);
    });
  }

  close(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}

/** Within its session, and its session among the others (sched(7), "The autogroup feature"). */
function prefer(pid: number): boolean {
  try {
    setPriority(pid, constants.priority.PRIORITY_HIGH);
    const autogroup = `/proc/${pid}/autogroup`;
    if (existsSync(autogroup)) writeFileSync(autogroup, String(constants.priority.PRIORITY_HIGH));
    return true;
  } catch {
    return false;
  }
}
