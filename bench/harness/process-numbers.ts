import { readdirSync, readFileSync } from 'node:fs';
import { treeOf } from '../../test/support/processes/worker-ids.ts';
import { sumOf } from './report.ts';

/** What the system says of one process (Linux, proc(5)). */
export type ProcessNumbers = NonNullable<ReturnType<typeof readProcess>>;

/** Clock ticks of proc(5) in a second: 100 on every Linux that Node runs on (sysconf(3), `_SC_CLK_TCK`). */
const TICKS_PER_SECOND = 100;

/** Numbers of a process; `undefined` if it has ended, be it between two files of it. */
export function readProcess(pid: number) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const number = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
    // The second field is the name in parentheses, which may hold anything; the 14th to 17th are times.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const seconds = (field: number): number => Number(fields[field - 3]) / TICKS_PER_SECOND;
    return {
      residentBytes: number('VmRSS') * 1024,
      /** The most that it ever had. */
      peakResidentBytes: number('VmHWM') * 1024,
      threads: number('Threads'),
      /** Open files, the sockets included. */
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
      /** Used by the process itself, in user and kernel mode. */
      cpuSeconds: seconds(14) + seconds(15),
      /** Used by children that have ended, and theirs. */
      endedChildrenCpuSeconds: seconds(16) + seconds(17),
    };
  } catch {
    return undefined;
  }
}

/** Numbers of a process and of all that it has started, and these have. */
export function readTree(pid: number): ProcessNumbers[] {
  return treeOf(pid).flatMap((each) => readProcess(each) ?? []);
}

/**
 * CPU seconds of a process, of all that it has started, and of what these have: those that ended too. Of those that
 * have ended in a PID namespace of their own, nothing is known.
 */
export function readTreeCpuSeconds(pid: number): number {
  return sumOf(readTree(pid), (it) => it.cpuSeconds + it.endedChildrenCpuSeconds);
}

/**
 * Watches the machine from now on until it is read, in shares of its cores: what was idle, and what went to others than
 * this process and all that it has started. What a host keeps from a virtual machine counts as others, too.
 */
export function watchMachine(): () => { readonly idleShare: number; readonly othersShare: number } {
  const read = () => ({ ...readMachineSeconds(), own: readTreeCpuSeconds(process.pid) });
  const before = read();
  return () => {
    const now = read();
    const idle = now.idle - before.idle;
    const used = now.used - before.used;
    const all = Math.max(1 / TICKS_PER_SECOND, used + idle);
    const others = Math.max(0, used - (now.own - before.own));
    return { idleShare: idle / all, othersShare: others / all };
  };
}

/** Seconds of all cores since the machine's start, used by processes and idle (proc(5), `stat`). */
function readMachineSeconds(): { readonly used: number; readonly idle: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  // User, nice, system, idle, waiting, two sorts of interrupts, stolen; guests are in user already.
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  const idle = (ticks[3] ?? 0) + (ticks[4] ?? 0);
  const used = sumOf(ticks, (tick) => tick) - idle;
  return { used: used / TICKS_PER_SECOND, idle: idle / TICKS_PER_SECOND };
}
