import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { kill } from 'node:process';

/** Processes of a worker in /proc. In a PID namespace, bubblewrap waits for Node, the namespace's first process. */

/** Polling interval for the first process of a namespace, in milliseconds, and the maximum number of polls. */
const POLL_INTERVAL_MS = 10;
export const MAX_POLLS = 100;

/** First exit status that reports a signal (sh(1), bwrap(1)). */
const FIRST_SIGNAL_STATUS = 128;

/** Reads a file of proc(5); empty if the process has ended, or /proc is not mounted. */
export function readProcessFile(processId: number | 'self' | undefined, name: string): string {
  try {
    return readFileSync(`/proc/${processId}/${name}`, 'utf8');
  } catch {
    return '';
  }
}

/** Returns the process id of Node in the tree that `spawn` has started. */
export function findWorker(startedId: number, isIsolated: boolean): number {
  return (isIsolated ? listChildren(startedId)[0] : undefined) ?? startedId;
}

/**
 * Kills a worker: the first process of a PID namespace, which takes all others along. Only after `polls` polls, kills
 * the started program: a process that it is just starting would remain defunct if the service is PID 1 of a container.
 */
export function killWorker(child: ChildProcess, isIsolated: boolean, polls: number): void {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const [first] = isIsolated ? listChildren(child.pid) : [];
  if (isIsolated && first === undefined && polls > 0) {
    setTimeout(killWorker, POLL_INTERVAL_MS, child, isIsolated, polls - 1);
    return;
  }
  try {
    if (first !== undefined && kill(first, 'SIGKILL')) return;
  } catch {
    // The process has just ended, or we may not kill it.
  }
  child.kill('SIGKILL');
}

/** Kills a group of processes, even after its leader has ended. */
export function killGroup(leaderId: number): void {
  try {
    kill(-leaderId, 'SIGKILL');
  } catch {
    // No process is left, or we may not kill it.
  }
}

/** Indexes of fields in /proc/PID/stat, after the name in parentheses (proc(5)). */
const STATE_FIELD = 0;
const STARTED_FIELD = 19;

/** Returns the start time of a process, which distinguishes it from a later process with its id; empty if missing. */
export function readStartTime(processId: number): string {
  return readStatOf(processId)[STARTED_FIELD] ?? '';
}

/** Whether a process is stopped, by a signal (`T`) or by a debugger (`t`). */
export function isStopped(processId: number | undefined): boolean {
  return readStatOf(processId)[STATE_FIELD]?.toUpperCase() === 'T';
}

function readStatOf(processId: number | undefined): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${processId}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return []; // the process has ended, or this is not Linux
  }
}

export function killIfSameProcess(processId: number, start: string): void {
  if (start === '' || readStartTime(processId) !== start) return;
  try {
    kill(processId, 'SIGKILL');
  } catch {
    // The process has just ended, or we may not kill it.
  }
}

/** Ending of a killed process that no signal reaches, because it waits for a hanging disk. */
export const NO_END = 'still running after SIGKILL';

/** Describes the end of a process for the log: a signal or an exit status. */
export function describeEnding(code: number | null, signal: NodeJS.Signals | null): string {
  const number = Number(code) - FIRST_SIGNAL_STATUS;
  const [name] = Object.entries(constants.signals).find(([, value]) => value === number) ?? [];
  return signal ?? name ?? `status ${code}`;
}

/** Lists the children of a process, oldest first. */
function listChildren(processId: number | undefined): readonly number[] {
  try {
    const text = readFileSync(`/proc/${processId}/task/${processId}/children`, 'utf8');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return []; // the process has ended, or this is not Linux
  }
}
