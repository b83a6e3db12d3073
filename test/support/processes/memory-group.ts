import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from '../at-end.ts';

/** Files of the memory controller of cgroup v1 and v2. */
const controllers = [
  {
    line: /^\d+:(?:.*,)?memory(?:,.*)?:(.*)$/m,
    root: '/sys/fs/cgroup/memory',
    limit: 'memory.limit_in_bytes',
    resident: /^total_rss (\d+)$/m,
    kills: 'memory.oom_control',
  },
  {
    line: /^0::(.*)$/m,
    root: '/sys/fs/cgroup',
    limit: 'memory.max',
    resident: /^anon (\d+)$/m,
    kills: 'memory.events',
  },
] as const;

/**
 * Creates a cgroup with a memory limit until the end of the test: below this process's own group, or below the nearest
 * parent that delegates its memory controller (cgroup v2). Returns `undefined` if this machine does not permit it.
 */
export function useMemoryGroup(limitBytes: number) {
  const own = readFileSync('/proc/self/cgroup', 'utf8');
  for (const { line, root, limit, resident, kills } of controllers) {
    let parent = line.exec(own)?.[1];
    for (; parent !== undefined; parent = parent === '/' ? undefined : dirname(parent)) {
      const path = join(root, parent, `darkroom-test-${process.pid}`);
      try {
        mkdirSync(path);
      } catch {
        continue;
      }
      if (!existsSync(join(path, limit))) {
        rmdirSync(path);
        continue;
      }
      writeFileSync(join(path, limit), String(limitBytes));
      const read = (file: string, pattern: RegExp): number =>
        Number(pattern.exec(readFileSync(join(path, file), 'utf8'))?.[1]);
      let peakBytes = 0;
      const watch = setInterval(() => {
        peakBytes = Math.max(peakBytes, read('memory.stat', resident));
      }, 10);
      atEnd(async () => {
        clearInterval(watch);
        // The kernel removes a group once its last process is gone.
        for (;;) {
          try {
            return rmdirSync(path);
          } catch {
            await sleep(50);
          }
        }
      });
      return {
        membersFile: join(path, 'cgroup.procs'),
        /** Counts the processes that the kernel killed for lack of memory. */
        countKills: () => read(kills, /^oom_kill (\d+)$/m),
        /** Returns the maximum private memory of all processes since the last call, in bytes. */
        takePeak: () => {
          const bytes = peakBytes;
          peakBytes = 0;
          return bytes;
        },
      };
    }
  }
  return undefined;
}
