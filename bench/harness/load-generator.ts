import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import type { Load, LoadReport, LoadResult } from './load.ts';

/** Child process that generates loads. */
export class LoadGenerator {
  readonly #child: ChildProcess;
  /** Whether it runs at a higher priority than other processes. */
  readonly isPreferred: boolean;

  /** A higher priority usually needs root. Measured times then do not include the generator's own wait for a core. */
  constructor(wantsPreference = false) {
    this.#child = fork(new URL('./load.js', import.meta.url), {
      serialization: 'advanced',
      // In its own session, because Linux divides cores among sessions before it compares priorities.
      detached: true,
    });
    this.isPreferred = wantsPreference && prefer(this.#child.pid ?? 0);
  }

  /** Drives one load at a time. Throws if a closed loop reaches the end of its list too early or the process ends. */
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

/** Raises the priority within the process's session, and of that session (sched(7), "The autogroup feature"). */
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
