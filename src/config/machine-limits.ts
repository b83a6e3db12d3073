import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Quota and period of the CPU controller, in microseconds: cgroup v2 in one file, v1 in two. */
const QUOTA_FILES = [
  ['/sys/fs/cgroup/cpu.max'],
  ['/sys/fs/cgroup/cpu/cpu.cfs_quota_us', '/sys/fs/cgroup/cpu/cpu.cfs_period_us'],
];

/**
 * Returns the cores that this process may use: those of its CPU affinity, or fewer if the container has a smaller
 * quota, which Node 20 does not see. At least 1.
 */
export function countCores(readText: (path: string) => string = readUtf8): number {
  const quotas = QUOTA_FILES.flatMap((paths) => {
    try {
      const [quotaUs, periodUs] = paths.map(readText).join(' ').trim().split(/\s+/).map(Number);
      const cores = (quotaUs ?? Number.NaN) / (periodUs ?? Number.NaN);
      return cores > 0 ? [Math.ceil(cores)] : []; // "max" and -1 mean no quota
    } catch {
      return []; // another kind of cgroup, or none
    }
  });
  return Math.max(1, Math.min(availableParallelism(), ...quotas));
}

/** Memory of a light render besides its original, in bytes; measured: 215 MiB (a progressive JPEG of 20 megapixels). */
const LIGHT_MEMORY_BYTES = 288 * 1024 ** 2;

/**
 * Plans the number of render processes of each lane, and the private writable memory of each process, in bytes. The two
 * processes of a core share its memory; where that is too small for two, the lanes share the cores.
 *
 * @param memoryBytes of all processes of one core
 */
export function planWorkers(cores: number, memoryBytes: number, maxOriginalBytes: number) {
  const light = LIGHT_MEMORY_BYTES + maxOriginalBytes;
  const heavy = memoryBytes - light;
  if (heavy >= light) {
    return { workers: { light: cores, heavy: cores }, memoryBytes: { light, heavy } };
  }
  const heavyWorkers = Math.max(1, Math.floor(cores / 2));
  return {
    workers: { light: Math.max(1, cores - heavyWorkers), heavy: heavyWorkers },
    memoryBytes: { light: memoryBytes, heavy: memoryBytes },
  };
}

/** Most connections without a setting: an idle one was measured at 11 kB, with TLS at 57 to 77 kB. */
const MAX_BY_DEFAULT = 16_384;

/** Files of the process itself: the program, the log, a worker's start, files just being closed. */
const OWN_FILES = 128;

/** Returns the fault of a limit of open files with which the modules of the service could not be read. */
export function findFilesFault(openFilesLimit = readOpenFilesLimit()): string | undefined {
  if (openFilesLimit === undefined || openFilesLimit >= OWN_FILES) return undefined;
  return `ulimit -n: expected a limit of ${OWN_FILES} open files at least (LimitNOFILE= of systemd, --ulimit of Docker) but received ${openFilesLimit}`;
}

/** Assumed limit where the system does not report one; macOS has at least as many. */
const ASSUMED_FILES = 10_240;

/**
 * Returns how many connections there may be: those files that the rest of the service does not need. Without a bound,
 * many clients would make the storage fail.
 */
export function planConnections(
  otherFiles: number,
  openFilesLimit: number | undefined = readOpenFilesLimit(),
) {
  const most = Math.max(2, (openFilesLimit ?? ASSUMED_FILES) - OWN_FILES - otherFiles);
  return { byDefault: Math.min(most, MAX_BY_DEFAULT), most };
}

/** Returns the limit of open files of this process, sockets included; `undefined` if the system does not report it. */
export function readOpenFilesLimit(
  readText: (path: string) => string = readUtf8,
): number | undefined {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readText('/proc/self/limits'))?.[1];
    return limit === undefined ? undefined : Number(limit.replace('unlimited', 'Infinity'));
  } catch {
    return undefined;
  }
}

function readUtf8(path: string): string {
  return readFileSync(path, 'utf8');
}
