import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { kill } from 'node:process';

/**
 * The processes of a worker, seen from outside. In a PID namespace of its own, Node is the third: the program that was
 * started waits for the first process of the namespace, and that one for Node.
 */

/** Statuses from here on say which signal has ended a process (sh(1), bwrap(1)). */
const FIRST_SIGNAL_STATUS = 128;

/**
 * The process that is Node in what `spawn` has started.
 *
 * @param hasOwnProcesses whether it is in a PID namespace of its own
 */
export function findWorker(startedId: number, hasOwnProcesses: boolean): number {
  if (!hasOwnProcesses) return startedId;
  const [first] = listChildren(startedId);
  const [worker] = first === undefined ? [] : listChildren(first);
  return worker ?? startedId;
}

/**
 * Kills a worker at once. In a PID namespace of its own, Node itself is killed: what was started ends after it, and
 * with the namespace all that Node has started. While there is no Node yet, what was started takes the rest along.
 */
export function killWorker(child: ChildProcess, hasOwnProcesses: boolean): void {
  if (child.pid === undefined || !isRunning(child)) return;
  const worker = findWorker(child.pid, hasOwnProcesses);
  try {
    if (worker !== child.pid && kill(worker, 'SIGKILL')) return;
  } catch {
    // It has just ended, or we may not.
  }
  child.kill('SIGKILL');
}

/** What tells a process from another one that has its id later: when it was started (proc(5)); empty where there is none. */
export function readStartOf(processId: number): string {
  return readStat(processId)[STARTED_FIELD] ?? '';
}

/** Kills a process, if it is still the one that was started then. */
export function killSince(processId: number, start: string): void {
  if (start === '' || readStartOf(processId) !== start) return;
  try {
    kill(processId, 'SIGKILL');
  } catch {
    // It has just ended, or we may not.
  }
}

/** How a process has ended, for the log: a signal or an exit status. */
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
 * Lowers the priority of a process, with all the threads that it has; those to come inherit it. That is allowed to
 * the same user and to root; where it is not, the confinement shows what the priority really is.
 *
 * @param niceness at least that of its start, at most 19
 */
export function lowerPriority(processId: number, niceness: number): void {
  for (const thread of listThreads(processId)) {
    try {
      if (getPriority(thread) < niceness) setPriority(thread, niceness);
    } catch {
      // Not allowed, or it has just ended.
    }
  }
}

/** A clock tick of proc(5), on every Linux that Node runs on. */
const TICK_MS = 10;

/** CPU time of a process with all of its threads so far, in milliseconds; `undefined` where the system does not say it. */
export function readProcessCpuMs(processId: number | undefined): number | undefined {
  const { [USER_TIME_FIELD]: user, [SYSTEM_TIME_FIELD]: system } = readStat(processId);
  return user === undefined ? undefined : (Number(user) + Number(system)) * TICK_MS;
}

/** Fields of /proc/PID/stat from the third on; the second is the name in parentheses, which may hold anything. */
const USER_TIME_FIELD = 11;
const SYSTEM_TIME_FIELD = 12;
const STARTED_FIELD = 19;

/** None where it has ended, or this is no Linux. */
function readStat(processId: number | undefined): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${processId}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ', STARTED_FIELD + 1);
  } catch {
    return [];
  }
}

/** proc(5); where there is none, a process has one priority for all of its threads. */
function listThreads(processId: number): readonly number[] {
  try {
    return readdirSync(`/proc/${processId}/task`).map(Number);
  } catch {
    return [processId];
  }
}

/** Process ids of the children of a process, oldest first (proc_pid_task_children(5)). */
function listChildren(processId: number | undefined): readonly number[] {
  try {
    const text = readFileSync(`/proc/${processId}/task/${processId}/children`, 'utf8');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return []; // it has ended, or this is no Linux
  }
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}
