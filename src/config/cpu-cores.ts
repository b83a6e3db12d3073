import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Quota and period of the CPU controller, in microseconds: cgroup v2 in one file, v1 in two. */
const QUOTA_FILES = [
  ['/sys/fs/cgroup/cpu.max'],
  ['/sys/fs/cgroup/cpu/cpu.cfs_quota_us', '/sys/fs/cgroup/cpu/cpu.cfs_period_us'],
];

/**
 * Cores this process may use: those it may run on, or fewer if the container has a smaller quota,
 * which Node 20 does not see. At least 1.
 */
export function countCores(readText: (path: string) => string = readUtf8): number {
  const quotas = QUOTA_FILES.flatMap((paths) => {
    try {
      const [quotaUs, periodUs] = paths.map(readText).join(' ').trim().split(/\s+/).map(Number);
      const cores = (quotaUs ?? Number.NaN) / (periodUs ?? Number.NaN);
      return cores > 0 ? [Math.ceil(cores)] : []; // "max" and -1 are no quota
    } catch {
      return []; // not this kind of cgroup, or none
    }
  });
  return Math.max(1, Math.min(availableParallelism(), ...quotas));
}

function readUtf8(path: string): string {
  return readFileSync(path, 'utf8');
}
