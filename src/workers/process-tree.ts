import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { kill } from 'node:process';

/**
 * The processes of a worker, seen from outside. In a PID namespace of its own, Node is the third: the started program
 * waits for the first process of the namespace, which waits for Node.
 */

/** Least status that reports the signal which ended a process (sh(1), bwrap(1)). */
const FIRST_SIGNAL_STATUS = 128;

/**
 * Returns the process id of Node within the tree that `spawn` has started.
 *
 * @param hasOwnProcesses whether Node is in a PID namespace of its own
 */
export function findWorker(startedId: number, hasOwnProcesses: boolean): number {
  if (!hasOwnProcesses) return startedId;
  const [first] = listChildren(startedId);
  const [worker] = first === undefined ? [] : listChildren(first);
  return worker ?? startedId;
}

/**
 * Kills a worker at once. In a PID namespace of its own, Node itself is killed: the started program ends after it, and
 * with the namespace all processes that Node has started. Before Node runs, the started program takes the rest along.
 */
export function killWorker(child: ChildProcess, hasOwnProcesses: boolean): void {
  if (child.pid === undefined || !isRunning(child)) return;
  const worker = findWorker(child.pid, hasOwnProcesses);
  try {
    if (worker !== child.pid && kill(worker, 'SIGKILL')) return;
  } catch {
    // The process has just ended, or we may not kill it.
  }
  child.kill('SIGKILL');
}

/** Returns the start time of a process, which tells it from a later one with its id (proc(5)); empty if missing. */
export function readStartOf(processId: number): string {
  return readStat(processId)[STARTED_FIELD] ?? '';
}

/** Kills a process, if its start time is still the same. */
export function killSince(processId: number, start: string): void {
  if (start === '' || readStartOf(processId) !== start) return;
  try {
    kill(processId, 'SIGKILL');
  } catch {
    // The process has just ended, or we may not kill it.
  }
}

/** Describes the end of a process for the log: a signal or an exit status. */
export function describeEnding(
  code: number | null,
  signal: NodeJS.Signals | null,
  hasOwnProcesses: boolean,
): string {
  const number = hasOwnProcesses ? Number(code) - FIRST_SIGNAL_STATUS : 0;
  const [told] = Object.entries(constants.signals).find(([, value]) => value === number) ?? [];
  return signal ?? told ?? `status ${code}`;
}

/**
 * Lowers the priority of a process with all its threads; later threads inherit it. Only its user and root may do so;
 * otherwise the confinement shows the actual priority.
 *
 * @param niceness at least that of its start, at most 19
 */
export function lowerPriority(processId: number, niceness: number): void {
  for (const thread of listThreads(processId)) {
    try {
      if (getPriority(thread) < niceness) setPriority(thread, niceness);
    } catch {
      // Not permitted, or the process has just ended.
    }
  }
}

/** Clock tick of proc(5), the same on every Linux that Node runs on. */
const TICK_MS = 10;

/**
 * Returns the CPU time of a process with all its threads, in milliseconds; `undefined` if the system does not report
 * it.
 */
export function readProcessCpuMs(processId: number | undefined): number | undefined {
  const { [USER_TIME_FIELD]: user, [SYSTEM_TIME_FIELD]: system } = readStat(processId);
  return user === undefined ? undefined : (Number(user) + Number(system)) * TICK_MS;
}

/** Indices into /proc/PID/stat from its third field on; the second is the name in parentheses, of any content. */
const USER_TIME_FIELD = 11;
const SYSTEM_TIME_FIELD = 12;
const STARTED_FIELD = 19;

/** Reads the fields from the third on; empty if the process has ended, or on other systems than Linux. */
function readStat(processId: number | undefined): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${processId}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ', STARTED_FIELD + 1);
  } catch {
    return [];
  }
}

/** Lists threads by proc(5); elsewhere, a process has one priority for all of its threads. */
function listThreads(processId: number): readonly number[] {
  try {
    return readdirSync(`/proc/${processId}/task`).map(Number);
  } catch {
    return [processId];
  }
}

/** Lists the children of a process, oldest first (proc_pid_task_children(5)). */
function listChildren(processId: number | undefined): readonly number[] {
  try {
    const text = readFileSync(`/proc/${processId}/task/${processId}/children`, 'utf8');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return []; // the process has ended, or this is not Linux
  }
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}
