import { type ChildProcess, spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import type { Launcher } from './worker-confinement.ts';

/** What a worker process is started with. */
export interface WorkerSpawn {
  readonly launcher: Launcher;
  /** Path of the compiled entry of the worker. */
  readonly workerFile: string;
  /** All that it gets to know of our environment; no secret. */
  readonly environment: Readonly<Record<string, string>>;
  readonly niceness: number;
}

/** Heap of JavaScript, in MiB: pictures are not in it, and nothing else is large. */
const MAX_HEAP_MEBIBYTES = 128;

/**
 * Starts a worker process, with standard error and the channel as pipes.
 *
 * @throws Error if the system refuses at once; other refusals are `error` events
 */
export function spawnWorker(options: WorkerSpawn): ChildProcess {
  const { launcher, workerFile, environment, niceness } = options;
  const flags = ['--enable-source-maps', `--max-old-space-size=${MAX_HEAP_MEBIBYTES}`];
  const prefix = launcher.argsFor(niceness);
  const child = spawn(launcher.command, [...prefix, ...flags, workerFile], {
    env: {
      ...environment,
      // One render at a time needs few threads; glibc's 8 arenas per core only fragment memory.
      UV_THREADPOOL_SIZE: '2',
      MALLOC_ARENA_MAX: '2',
      // libvips' warnings are no errors (spec §3).
      VIPS_WARNING: '0',
      // What it decodes stays in memory, where it is bounded: beyond 100 MB it would go to a file.
      VIPS_DISC_THRESHOLD: '1000g',
    },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  // A launcher does that itself, before Node is there.
  if (prefix.length === 0) lowerPriority(child, niceness);
  return child;
}

/** Threads that it has by now keep theirs. Lower is allowed to anyone, back up to nobody. */
function lowerPriority({ pid }: ChildProcess, niceness: number): void {
  try {
    if (pid !== undefined) setPriority(pid, niceness);
  } catch {
    // Not allowed here; the confinement tells what the priority really is.
  }
}
