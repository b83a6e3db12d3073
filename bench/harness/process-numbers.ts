import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { treeOf } from '../../test/support/processes/worker-ids.ts';

/** What the system says of one process (Linux, proc(5)). */
export interface ProcessNumbers {
  readonly residentBytes: number;
  /** The most that it ever had. */
  readonly peakResidentBytes: number;
  readonly threads: number;
  /** Open file descriptors, the sockets included. */
  readonly descriptors: number;
  readonly sockets: number;
  /** Used by the process itself, in user and kernel mode. */
  readonly cpuSeconds: number;
  /** Used by children that have ended, and theirs. */
  readonly endedChildrenCpuSeconds: number;
}

/** Clock ticks of proc(5) in a second: 100 on every Linux that Node runs on (sysconf(3), `_SC_CLK_TCK`). */
const TICKS_PER_SECOND = 100;

/** Numbers of a process; `undefined` if it has ended, be it between two files of it. */
export function readProcess(pid: number): ProcessNumbers | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the name in parentheses, which may hold anything; the 14th to 17th are times.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const seconds = (field: number): number => Number(fields[field - 3]) / TICKS_PER_SECOND;
    const { descriptors, sockets } = countDescriptors(pid);
    return {
      residentBytes: readNumber(status, 'VmRSS') * 1024,
      peakResidentBytes: readNumber(status, 'VmHWM') * 1024,
      threads: readNumber(status, 'Threads'),
      descriptors,
      sockets,
      cpuSeconds: seconds(14) + seconds(15),
      endedChildrenCpuSeconds: seconds(16) + seconds(17),
    };
  } catch {
    return undefined;
  }
}

/** Seconds of all cores since the machine's start, used by processes and idle (proc(5), `stat`). */
function readMachineSeconds(): { readonly used: number; readonly idle: number } {
  const [
    ,
    user = 0,
    nice = 0,
    system = 0,
    idle = 0,
    waiting = 0,
    irq = 0,
    softIrq = 0,
    stolen = 0,
  ] = readFileSync('/proc/stat', 'utf8').split('\n', 1).join().split(/\s+/).map(Number);
  const used = user + nice + system + irq + softIrq + stolen;
  return { used: used / TICKS_PER_SECOND, idle: (idle + waiting) / TICKS_PER_SECOND };
}

/** Watches how much of the machine is idle, as a share of its cores, from now on until it is read. */
export function watchIdle(): () => number {
  const before = readMachineSeconds();
  return () => {
    const { used, idle } = readMachineSeconds();
    const idleSeconds = idle - before.idle;
    return idleSeconds / Math.max(1 / TICKS_PER_SECOND, used - before.used + idleSeconds);
  };
}

/** CPU seconds of a service, so far. */
export interface CpuSeconds {
  readonly main: number;
  /** Of all workers there ever were, and of what starts them; of those that have ended in a PID namespace of their own, nothing is known. */
  readonly workers: number;
}

/** What a service and its workers have used so far. */
export function readCpuSeconds(pid: number): CpuSeconds {
  const main = readProcess(pid)?.cpuSeconds ?? 0;
  return { main, workers: readTreeCpuSeconds(pid) - main };
}

/** CPU seconds of a process, of all that it has started, and of what these have: those that ended too. */
function readTreeCpuSeconds(pid: number): number {
  return treeOf(pid)
    .flatMap((each) => readProcess(each) ?? [])
    .reduce(
      (sum, { cpuSeconds, endedChildrenCpuSeconds }) => sum + cpuSeconds + endedChildrenCpuSeconds,
      0,
    );
}

/**
 * Watches what the machine does beside all that this process has started: as a share of its cores, from now on
 * until it is read. What a host keeps from a virtual machine counts as well.
 */
export function watchOthers(): () => number {
  const read = (): number => readMachineSeconds().used - readTreeCpuSeconds(process.pid);
  const before = read();
  const beganMs = performance.now();
  return () => {
    const coreSeconds = (availableParallelism() * (performance.now() - beganMs)) / 1000;
    return Math.max(0, (read() - before) / coreSeconds);
  };
}

function countDescriptors(pid: number): { readonly descriptors: number; readonly sockets: number } {
  const folder = `/proc/${pid}/fd`;
  const names = readdirSync(folder);
  const sockets = names.filter((name) => {
    try {
      return readlinkSync(`${folder}/${name}`).startsWith('socket:');
    } catch {
      return false; // closed meanwhile
    }
  });
  return { descriptors: names.length, sockets: sockets.length };
}

function readNumber(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
}
