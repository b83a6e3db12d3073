import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { type Launcher, type WorkerProgram, writeInputs } from '../confinement/launchers.ts';

/**
 * Niceness of a process that starts. At that of heavy renders, on a machine whose cores are all taken, a start of
 * 0.3 s of CPU took more than the 30 s that it may take.
 */
const START_NICENESS = 5;

/** Heap of JavaScript, in MiB: pictures are not in it, and nothing else is large. */
const MAX_HEAP_MEBIBYTES = 128;

/**
 * How glibc allocates in a worker. Its 8 arenas per core only fragment memory. Left to itself, it gives the
 * buffers of every picture back to the system and has the next one's pages mapped anew: kept up to 64 MiB
 * at the heap's end, and mapped apart only from 32 MiB (glibc's most), photographs took 44.7 ms of CPU
 * instead of 47.2, avatars 9.2 instead of 9.5 (medians of four runs over 60 originals), and no more memory.
 */
const ALLOCATION = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: String(64 * 1024 ** 2),
  MALLOC_MMAP_THRESHOLD_: String(32 * 1024 ** 2),
};

/**
 * Starts a worker process, with standard error and the channel as pipes.
 *
 * @param memoryBytes private writable memory that it may have
 * @throws Error if the system refuses at once; other refusals are `error` events
 */
export function spawnWorker(
  launcher: Launcher,
  { workerFile, environment }: WorkerProgram,
  memoryBytes: number,
): ChildProcess {
  const flags = ['--enable-source-maps', `--max-old-space-size=${MAX_HEAP_MEBIBYTES}`];
  const launch = launcher.launch(START_NICENESS, memoryBytes);
  const args = [...launch.args, ...flags, workerFile];
  const settings: SpawnOptions = {
    env: {
      ...environment,
      // One render at a time needs few threads.
      UV_THREADPOOL_SIZE: '2',
      ...ALLOCATION,
      // libvips' warnings are no errors (contract §3).
      VIPS_WARNING: '0',
      // What it decodes stays in memory, where it is bounded: beyond 100 MB it would go to a file.
      VIPS_DISC_THRESHOLD: '1000g',
      // It would be refused (see the filter of system calls), and had been one more way into the kernel.
      UV_USE_IO_URING: '0',
    },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', ...launch.inputs.map(() => 'pipe' as const)],
  };
  try {
    const child = spawn(launch.command, args, settings);
    child.once('exit', launch.release);
    child.once('error', () => child.pid === undefined && launch.release());
    writeInputs(child, launch);
    return child;
  } catch (error) {
    launch.release();
    throw error;
  }
}
