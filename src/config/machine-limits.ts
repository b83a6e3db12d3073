import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { posix } from 'node:path';

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

const MEBIBYTE = 1024 ** 2;

/** Where cgroup v1 and v2 have their memory controller, and the file of a group's limit. */
const MEMORY_CONTROLLERS = [
  { line: /^0::(.*)$/m, root: '/sys/fs/cgroup', file: 'memory.max' },
  {
    line: /^\d+:(?:.*,)?memory(?:,.*)?:(.*)$/m,
    root: '/sys/fs/cgroup/memory',
    file: 'memory.limit_in_bytes',
  },
];

/**
 * Returns the memory that the service may use, in bytes: that of the machine, or the least limit of its cgroup and of
 * those around it. A container may see its own group as the root, whatever path the kernel reports.
 */
export function readMemoryBytes(
  readText: (path: string) => string = readUtf8,
  machineBytes = totalmem(),
): number {
  const read = (path: string): string => {
    try {
      return readText(path);
    } catch {
      return ''; // another kind of cgroup, or none
    }
  };
  const groups = read('/proc/self/cgroup');
  const limits = MEMORY_CONTROLLERS.flatMap(({ line, root, file }) => {
    const found: number[] = [];
    for (let group = line.exec(groups)?.[1] ?? '/'; ; group = posix.dirname(group)) {
      const bytes = Number.parseInt(read(posix.join(root, group, file)), 10);
      if (bytes > 0) found.push(bytes); // "max" means no limit
      if (group === '/' || group === '.') return found;
    }
  });
  return Math.min(machineBytes, ...limits);
}

/**
 * Memory besides workers, caches, originals and uploads, in bytes; measured: 50 to 62 MiB of the main process, 8 MiB of
 * the process that starts workers, and pages of programs and files.
 */
const OWN_BYTES = 118 * MEBIBYTE;

/** Defaults of settings of memory: on a large machine, and the least, which are those of 512 MiB. */
export const memoryDefaults = {
  CACHE_MEMORY_BYTES: { full: 256 * MEBIBYTE, least: 8 * MEBIBYTE },
  CACHE_ORIGINALS_BYTES: { full: 64 * MEBIBYTE, least: 2 * MEBIBYTE },
  ORIGINALS_MEMORY_BYTES: { full: 512 * MEBIBYTE, least: 16 * MEBIBYTE },
  RELAY_MEMORY_BYTES: { full: 128 * MEBIBYTE, least: 8 * MEBIBYTE },
};

/** Settings whose defaults depend on the memory, but for that of workers. */
export type MemorySetting = keyof typeof memoryDefaults;

/** Memory from which on the defaults grow, and over how much they grow to the full ones, in bytes. */
const GROWS_FROM_BYTES = 384 * MEBIBYTE;
const GROWS_OVER_BYTES = 4_096 * MEBIBYTE;

/** Bound of a worker's private memory, in relation to what it touches of it: 62 to 83 % were measured. */
const BOUND_FACTOR = 4 / 3;

/** Full default of `WORKER_MEMORY_BYTES`: enough for 100 megapixels. */
export const FULL_WORKER_BYTES = 2_560 * MEBIBYTE;

/**
 * Derives the defaults of settings of memory. For one core, in MiB:
 *
 * | Memory | CACHE_MEMORY | CACHE_ORIGINALS | ORIGINALS_MEMORY | RELAY_MEMORY | all workers |
 * |---|---|---|---|---|---|
 * | 512 | 8 | 2 | 16 | 8 | 480 |
 * | 1024 | 40 | 10 | 80 | 20 | 1008 |
 * | 4096 | 232 | 58 | 464 | 116 | 2560 |
 * | 4480 | 256 | 64 | 512 | 128 | 2560 |
 */
export function planMemory(memoryBytes: number, cores: number) {
  const share = Math.min(Math.max((memoryBytes - GROWS_FROM_BYTES) / GROWS_OVER_BYTES, 0), 1);
  const names = Object.keys(memoryDefaults) as MemorySetting[];
  const defaults = Object.fromEntries(
    names.map((name) => {
      const { full, least } = memoryDefaults[name];
      return [name, Math.max(roundDown(full * share), least)];
    }),
  ) as Readonly<Record<MemorySetting, number>>;
  const takenBytes = names.reduce((sum, name) => sum + defaults[name], OWN_BYTES);
  const leftBytes = Math.max(memoryBytes - takenBytes, 0);
  const mostBytes = roundDown(leftBytes * BOUND_FACTOR);
  const workersBytes = Math.min(mostBytes, cores * FULL_WORKER_BYTES);
  return { defaults, workersBytes, spareBytes: mostBytes - workersBytes };
}

/** Returns the memory that the service needs at most, in bytes. */
export function addUpMemory(parts: readonly number[], workersBytes: number): number {
  return parts.reduce((sum, bytes) => sum + bytes, OWN_BYTES + workersBytes / BOUND_FACTOR);
}

/** Returns whole MiB, in bytes. */
function roundDown(bytes: number): number {
  return Math.floor(bytes / MEBIBYTE) * MEBIBYTE;
}

/** Minimum memory bound of a worker, in bytes: 132 MiB are needed for a small image. */
export const LEAST_WORKER_BYTES = 256 * MEBIBYTE;

/** Memory of a light render besides its original, in bytes; measured: 215 MiB (a progressive JPEG of 20 megapixels). */
const LIGHT_BYTES = 288 * MEBIBYTE;

/** Memory of a worker that renders stills of 24 megapixels, in bytes; measured: 463 MiB from AVIF, 470 from WebP. */
const LEAST_HEAVY_BYTES = 480 * MEBIBYTE;

/** Memory of each heavy worker where there are several, in bytes: that of 40 megapixels. */
const HEAVY_BYTES = 1_024 * MEBIBYTE;

/**
 * Plans the number of render processes of each lane, and the bound of each one's private memory, in bytes. The light
 * lane has one process more than cores, where the memory suffices: a worker that waits for its input leaves a core
 * idle. Where the memory is too small for two lanes, all renders have the light one.
 *
 * @param memoryBytes of one light and one heavy process per core
 * @param spareBytes memory beyond that, for the additional light process
 */
export function planWorkers(
  cores: number,
  memoryBytes: number,
  maxOriginalBytes: number,
  spareBytes: number,
) {
  const lightBytes = LIGHT_BYTES + maxOriginalBytes;
  const leastHeavyBytes = Math.max(LEAST_HEAVY_BYTES, lightBytes);
  const forHeavyBytes = memoryBytes - cores * lightBytes;
  if (forHeavyBytes >= leastHeavyBytes) {
    const besideExtraBytes = Math.min(forHeavyBytes, forHeavyBytes + spareBytes - lightBytes);
    const hasExtra = besideExtraBytes >= leastHeavyBytes;
    const heavyBytes = hasExtra ? besideExtraBytes : forHeavyBytes;
    const heavy = Math.min(Math.max(Math.floor(heavyBytes / HEAVY_BYTES), 1), cores);
    return {
      workers: { light: hasExtra ? cores + 1 : cores, heavy },
      memoryBytes: { light: lightBytes, heavy: Math.floor(heavyBytes / heavy) },
    };
  }
  const workers = Math.min(Math.max(Math.floor(memoryBytes / LEAST_HEAVY_BYTES), 1), cores);
  const each = Math.max(Math.floor(memoryBytes / workers), LEAST_WORKER_BYTES);
  return { workers: { light: workers, heavy: 0 }, memoryBytes: { light: each, heavy: each } };
}

/** Bound of a video decoder's private memory (contract §12), in bytes. */
const DECODER_BYTES = 512 * MEBIBYTE;

/** Returns the bound of a decoder, which shares the memory of the worker that waits for it. */
export function planDecoder(workerBytes: number): number {
  return Math.min(DECODER_BYTES, Math.floor(workerBytes / 2));
}

/** Most connections without a setting: an idle one was measured at 11 kB, with TLS at 57 to 77 kB. */
const MAX_BY_DEFAULT = 16_384;

/** Files of the process itself: the program, the log, the light worker beyond one per core, files just being closed. */
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
