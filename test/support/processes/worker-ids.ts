import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Reads a file of a process (Linux, proc(5)); empty if the process has exited. */
export function readProcessFile(pid: number | string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}

/** Whether a process runs; a zombie has already freed its resources. */
export function isAlive(pid: number): boolean {
  return /^State:\t[^ZX]/m.test(readProcessFile(pid, 'status'));
}

/** Lists the open files of a process below a directory. */
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
 * Returns the process ids of a service's workers (Linux, proc_pid_task_children(5)). The fork server is the service's
 * only child; in a PID namespace, the worker is the innermost descendant.
 */
export function workersOf(pid: number): number[] {
  return childrenOf(pid).flatMap(childrenOf).map(innermostOf);
}

function innermostOf(pid: number): number {
  const [child] = childrenOf(pid);
  return child === undefined ? pid : innermostOf(child);
}

/** Returns the process ids of a process and all its descendants. */
export function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)];
}

/** Returns the process ids of the children of all threads of a process. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      (readProcessFile(pid, `task/${thread}/children`).match(/\d+/g) ?? []).map(Number),
    );
  } catch {
    return []; // exited meanwhile
  }
}
