import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** A file of a process (Linux, proc(5)); empty where there is none, as the process is gone. */
export function readProcessFile(pid: number | string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}

/** Whether a process is there; a zombie, which was not waited for yet, holds nothing any more. */
export function isAlive(pid: number): boolean {
  return /^State:\t[^ZX]/m.test(readProcessFile(pid, 'status'));
}

/** The files below a directory that a process has open. */
export function openFilesBelow(directory: string, pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      const file = readlinkSync(`/proc/${pid}/fd/${name}`);
      return file.startsWith(directory) ? [file] : [];
    } catch {
      return []; // closed meanwhile
    }
  });
}

/**
 * Process ids of the workers of a service (Linux, proc_pid_task_children(5)). Its one child starts them, what that has
 * started may be a program that keeps a worker in a PID namespace; the worker is the innermost process then.
 */
export function workersOf(pid: number): number[] {
  return childrenOf(pid).flatMap(childrenOf).map(innermostOf);
}

function innermostOf(pid: number): number {
  const [child] = childrenOf(pid);
  return child === undefined ? pid : innermostOf(child);
}

/** Process ids of a process and of all that it has started, and these have. */
export function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)];
}

/** Process ids of the children that any thread of a process has started. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      (readProcessFile(pid, `task/${thread}/children`).match(/\d+/g) ?? []).map(Number),
    );
  } catch {
    return []; // gone in between
  }
}
