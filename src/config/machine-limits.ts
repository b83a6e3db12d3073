import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { posix } from 'node:path';

/** Quota and period of the CPU controller in microseconds: cgroup v2 in one file, v1 in two. */
const QUOTA_FILES = [
  ['/sys/fs/cgroup/cpu.max'],
  ['/sys/fs/cgroup/cpu/cpu.cfs_quota_us', '/sys/fs/cgroup/cpu/cpu.cfs_period_us'],
];

/** Returns the number of available cores: Node's, or the container's CPU quota if lower, which Node 20 ignores. */
export function countCores(readText: (path: string) => string = readUtf8): number {
  const quotas = QUOTA_FILES.flatMap((paths) => {
    try {
      const [quotaUs, periodUs] = paths.map(readText).join(' ').trim().split(/\s+/).map(Number);
      const cores = (quotaUs ?? Number.NaN) / (periodUs ?? Number.NaN);
      return cores > 0 ? [Math.ceil(cores)] : []; // "max" and -1 mean no quota
    } catch {
      return []; // another version of cgroup, or no cgroup
    }
  });
  return Math.max(1, Math.min(availableParallelism(), ...quotas));
}

const MEBIBYTE = 1024 ** 2;

const MEMORY_CONTROLLERS = [
  { line: /^0::(.*)$/m, root: '/sys/fs/cgroup', file: 'memory.max' },
  {
    line: /^\d+:(?:.*,)?memory(?:,.*)?:(.*)$/m,
    root: '/sys/fs/cgroup/memory',
    file: 'memory.limit_in_bytes',
  },
];

/**
 * Returns the memory of the machine, or the minimum of the limits of its cgroup and the parents, if less. A container
 * may see its own group as the root, regardless of the path that the kernel reports.
 */
export function readMemoryBytes(
  readText: (path: string) => string = readUtf8,
  machineBytes = totalmem(),
): number {
  const read = (path: string): string => {
    try {
      return readText(path);
    } catch {
      return ''; // another version of cgroup, or no cgroup
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

/** Measured: 50 to 62 MiB of the main process, 8 MiB of the fork server, and pages of programs and files. */
const OWN_BYTES = 118 * MEBIBYTE;

/** Defaults on a large machine, and on one of 512 MiB. */
export const memoryDefaults = {
  CACHE_MEMORY_BYTES: { full: 256 * MEBIBYTE, min: 8 * MEBIBYTE },
  CACHE_ORIGINALS_BYTES: { full: 64 * MEBIBYTE, min: 2 * MEBIBYTE },
  ORIGINALS_MEMORY_BYTES: { full: 512 * MEBIBYTE, min: 16 * MEBIBYTE },
  RELAY_MEMORY_BYTES: { full: 128 * MEBIBYTE, min: 8 * MEBIBYTE },
};

export type MemorySetting = keyof typeof memoryDefaults;

/** Memory above which the defaults grow, and the additional memory at which they are full. */
const GROWS_FROM_BYTES = 384 * MEBIBYTE;
const GROWS_OVER_BYTES = 4_096 * MEBIBYTE;

/** Ratio of a worker's private memory to its pages in use: 62 to 83 % of private memory were in use (measured). */
const PRIVATE_MEMORY_RATIO = 4 / 3;

/** Full default of `WORKER_MEMORY_BYTES`, for 100 megapixels. */
export const FULL_WORKER_BYTES = 2_560 * MEBIBYTE;

/** Derives the defaults of memory settings; `machine-limits.test.ts` has a table of examples. */
export function planMemory(memoryBytes: number, cores: number) {
  const fraction = Math.min(Math.max((memoryBytes - GROWS_FROM_BYTES) / GROWS_OVER_BYTES, 0), 1);
  const names = Object.keys(memoryDefaults) as MemorySetting[];
  const defaults = Object.fromEntries(
    names.map((name) => {
      const { full, min } = memoryDefaults[name];
      return [name, Math.max(roundDown(full * fraction), min)];
    }),
  ) as Readonly<Record<MemorySetting, number>>;
  const takenBytes = names.reduce((sum, name) => sum + defaults[name], OWN_BYTES);
  const leftBytes = Math.max(memoryBytes - takenBytes, 0);
  const maxBytes = roundDown(leftBytes * PRIVATE_MEMORY_RATIO);
  const workersBytes = Math.min(maxBytes, cores * FULL_WORKER_BYTES);
  return { defaults, workersBytes, spareBytes: maxBytes - workersBytes };
}

/** Returns the parts and the total of the maximum memory, and whether it exceeds the available memory. */
export function addMemory<Parts extends Readonly<Record<string, number>>>(
  totalBytes: number,
  parts: Parts,
  { workers, memoryBytes: workerBytes }: ReturnType<typeof planWorkers>,
) {
  const workersBytes = workers.light * workerBytes.light + workers.heavy * workerBytes.heavy;
  const neededBytes = Object.values(parts).reduce(
    (sum, bytes) => sum + bytes,
    OWN_BYTES + workersBytes / PRIVATE_MEMORY_RATIO,
  );
  return { totalBytes, ...parts, workerBytes, neededBytes, isShort: neededBytes > totalBytes };
}

/** Rounds down to a multiple of 1 MiB. */
function roundDown(bytes: number): number {
  return Math.floor(bytes / MEBIBYTE) * MEBIBYTE;
}

/** A small image needs 132 MiB. */
export const MIN_WORKER_BYTES = 256 * MEBIBYTE;

/** Memory of a light render without its original; measured: 215 MiB (a progressive JPEG of 20 megapixels). */
const LIGHT_BYTES = 288 * MEBIBYTE;

/** For stills of 24 megapixels; measured: 463 MiB from AVIF, 470 MiB from WebP. */
const MIN_HEAVY_BYTES = 480 * MEBIBYTE;

/** For 40 megapixels. */
const HEAVY_BYTES = 1_024 * MEBIBYTE;

/**
 * Plans the render processes of each lane, and the limit of their private memory. The light lane has one process more
 * than cores if the memory suffices: a worker that waits for its input leaves a core idle. With too little memory for
 * two lanes, all renders use the light one.
 *
 * @param memoryBytes memory of one light and one heavy process per core
 * @param spareBytes memory for the additional light process
 */
export function planWorkers(
  cores: number,
  memoryBytes: number,
  maxOriginalBytes: number,
  spareBytes: number,
) {
  const lightBytes = LIGHT_BYTES + maxOriginalBytes;
  const minHeavyBytes = Math.max(MIN_HEAVY_BYTES, lightBytes);
  const forHeavyBytes = memoryBytes - cores * lightBytes;
  if (forHeavyBytes >= minHeavyBytes) {
    const leftBytes = Math.min(forHeavyBytes, forHeavyBytes + spareBytes - lightBytes);
    const hasExtra = leftBytes >= minHeavyBytes;
    const heavyBytes = hasExtra ? leftBytes : forHeavyBytes;
    const heavy = Math.min(Math.max(Math.floor(heavyBytes / HEAVY_BYTES), 1), cores);
    return {
      workers: { light: hasExtra ? cores + 1 : cores, heavy },
      memoryBytes: { light: lightBytes, heavy: Math.floor(heavyBytes / heavy) },
    };
  }
  const workers = Math.min(Math.max(Math.floor(memoryBytes / MIN_HEAVY_BYTES), 1), cores);
  const each = Math.max(Math.floor(memoryBytes / workers), MIN_WORKER_BYTES);
  return { workers: { light: workers, heavy: 0 }, memoryBytes: { light: each, heavy: each } };
}

/** Contract §12. */
const DECODER_BYTES = 512 * MEBIBYTE;

/** A decoder shares the memory of the worker that waits for it. */
export function planDecoder(workerBytes: number): number {
  return Math.min(DECODER_BYTES, Math.floor(workerBytes / 2));
}

/** An idle connection takes 11 kB, with TLS 57 to 77 kB (measured). */
const MAX_BY_DEFAULT = 16_384;

/** The program, the log, the additional light worker, and files being closed. */
const OWN_FILES = 128;

/** Checks that the limit of open files suffices for loading the modules. */
export function findFilesFault(openFilesLimit = readOpenFilesLimit()): string | undefined {
  if (openFilesLimit === undefined || openFilesLimit >= OWN_FILES) return undefined;
  return `ulimit -n: expected a limit of at least ${OWN_FILES} open files (LimitNOFILE= of systemd, --ulimit of Docker) but received ${openFilesLimit}`;
}

/** For systems that report no limit; macOS has at least as many. */
const ASSUMED_FILES = 10_240;

/** Returns the files left for connections: more would leave the storage without files. */
export function planConnections(
  otherFiles: number,
  openFilesLimit: number | undefined = readOpenFilesLimit(),
) {
  const max = Math.max(2, (openFilesLimit ?? ASSUMED_FILES) - OWN_FILES - otherFiles);
  return { byDefault: Math.min(max, MAX_BY_DEFAULT), max };
}

/** Returns `undefined` if the system does not report the limit. */
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
