import { readdirSync, readFileSync } from 'node:fs';
import { treeOf } from '../../test/support/processes/worker-ids.ts';
import { sumOf } from './report.ts';

/** Clock ticks of proc(5) in a second: 100 on every Linux that Node runs on (sysconf(3), `_SC_CLK_TCK`). */
const TICKS_PER_SECOND = 100;

/** Reads the numbers of a process (Linux, proc(5)); `undefined` if it has ended, even between two of its files. */
export function readProcess(pid: number) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const number = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
    // The second field is the name in parentheses, which may contain anything; the 14th to 17th are times.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const seconds = (field: number): number => Number(fields[field - 3]) / TICKS_PER_SECOND;
    return {
      residentBytes: number('VmRSS') * 1024,
      /** Maximum since the process started. */
      peakResidentBytes: number('VmHWM') * 1024,
      threads: number('Threads'),
      /** Open files, including sockets. */
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
      /** User and kernel time of the process itself. */
      cpuSeconds: seconds(14) + seconds(15),
      /** Time of all descendants that have ended. */
      endedChildrenCpuSeconds: seconds(16) + seconds(17),
    };
  } catch {
    return undefined;
  }
}

/** Reads the numbers of a process and of all its descendants. */
export function readTree(pid: number) {
  return treeOf(pid).flatMap((each) => readProcess(each) ?? []);
}

/** Returns CPU seconds of a process and all descendants, also ended ones, but not of those ended in a PID namespace. */
export function readTreeCpuSeconds(pid: number): number {
  return sumOf(readTree(pid), (it) => it.cpuSeconds + it.endedChildrenCpuSeconds);
}

/**
 * Watches the machine until the returned function is called. That function returns the idle fraction of the cores, and
 * the fraction used by processes other than this one and its descendants, including time stolen by the host.
 */
export function watchMachine(): () => {
  readonly idleFraction: number;
  readonly othersFraction: number;
} {
  const read = () => ({ ...readMachineSeconds(), own: readTreeCpuSeconds(process.pid) });
  const before = read();
  return () => {
    const now = read();
    const idle = now.idle - before.idle;
    const used = now.used - before.used;
    const all = Math.max(1 / TICKS_PER_SECOND, used + idle);
    const others = Math.max(0, used - (now.own - before.own));
    return { idleFraction: idle / all, othersFraction: others / all };
  };
}

/** Reads seconds of all cores since the machine's start (proc(5), `stat`). */
function readMachineSeconds(): { readonly used: number; readonly idle: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  // User, nice, system, idle, iowait, irq, softirq, steal; guest time is in user time already.
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  const idle = (ticks[3] ?? 0) + (ticks[4] ?? 0);
  const used = sumOf(ticks, (tick) => tick) - idle;
  return { used: used / TICKS_PER_SECOND, idle: idle / TICKS_PER_SECOND };
}
