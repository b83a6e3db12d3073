import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { type Launcher, type WorkerProgram, writeInputs } from '../confinement/launchers.ts';

/**
 * Niceness of a starting process. At that of heavy renders, on a machine with all cores busy, a start with 0.3 s of CPU
 * took longer than its deadline of 30 s.
 */
const START_NICENESS = 5;

/** JavaScript heap, in MiB: images are outside of it, and nothing else is large. */
const MAX_HEAP_MEBIBYTES = 128;

/**
 * glibc's allocation in a worker. Its 8 arenas per core only fragment memory. By default, glibc returns the buffers of
 * every image to the system and has the next one's pages mapped anew: with up to 64 MiB kept at the heap's end, and
 * separate mappings only from 32 MiB (glibc's maximum), photographs took 44.7 ms of CPU instead of 47.2, avatars 9.2
 * instead of 9.5 (medians of four runs over 60 originals), and no more memory.
 */
const ALLOCATION = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: String(64 * 1024 ** 2),
  MALLOC_MMAP_THRESHOLD_: String(32 * 1024 ** 2),
};

/**
 * Starts a worker process, with standard error and the channel as pipes.
 *
 * @param memoryBytes bound of the private writable memory
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
      // libvips' warnings are not errors (contract §3).
      VIPS_WARNING: '0',
      // Decoded pixels stay in memory, which is bounded: by default, those beyond 100 MB go to a file.
      VIPS_DISC_THRESHOLD: '1000g',
      // The filter of system calls would refuse it, and it would be one more way into the kernel.
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
