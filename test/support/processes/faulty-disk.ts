import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** What may be wrong with a disk: every system call is late, or none ends, or all of them fail. */
export type DiskFault = 'none' | 'hang' | 'fail' | `delay ${number}`;

/** A directory on a disk that fails when it is told to. */
export type FaultyDisk = NonNullable<Awaited<ReturnType<typeof mountFaultyDisk>>>;

/** From the root of the repository, which all that uses it is started in. */
const PROGRAM = 'test/support/processes/faulty-disk.py';

/** Debian's, which has `python3-fusepy`. */
const PYTHON = '/usr/bin/python3';

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

/**
 * Passes a directory on through FUSE.
 *
 * @param mounted an empty directory, where it is to be seen
 * @param directory in which there is something
 * @returns `undefined` where that is not possible: it takes /dev/fuse, and Debian's `fuse3` and `python3-fusepy`
 */
export async function mountFaultyDisk(mounted: string, directory: string) {
  if (!existsSync('/dev/fuse') || !existsSync(PYTHON)) return undefined;
  const child = spawn(PYTHON, [PROGRAM, mounted, directory], {
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true, // it outlasts a Ctrl-C, which ends what uses it first
  });
  child.stdin.on('error', () => undefined);
  const replies = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (readdirSync(mounted).length === 0) {
    if (child.exitCode !== null || performance.now() > deadlineMs) {
      child.kill();
      return undefined;
    }
    await sleep(POLL_MS);
  }
  return {
    /** Makes it so for a directory at the top; the others stay as they are. */
    setFault: async (top: string, fault: DiskFault): Promise<void> => {
      child.stdin.write(`${top} ${fault}\n`);
      await replies.next();
    },
    /** Takes it away; what hangs ends. */
    close: async (): Promise<void> => {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}
