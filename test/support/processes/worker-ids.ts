import { readdirSync, readFileSync } from 'node:fs';

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
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
        .split(' ')
        .filter((child) => child !== '')
        .map(Number),
    );
  } catch {
    return []; // gone in between
  }
}
