import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** Fault of a disk: every system call is delayed, hangs or fails. */
export type DiskFault = 'none' | 'hang' | 'fail' | `delay ${number}`;

/** A mounted disk whose faults a test sets. */
export type FaultyDisk = NonNullable<Awaited<ReturnType<typeof mountFaultyDisk>>>;

const PROGRAM = 'test/support/processes/faulty-disk.py';

/** Debian's Python, for which `python3-fusepy` is packaged. */
const PYTHON = '/usr/bin/python3';

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

/**
 * Mounts `directory`, which must not be empty, through FUSE at the empty directory `mounted`. Returns `undefined`
 * without /dev/fuse, or Debian's `fuse3` and `python3-fusepy`.
 */
export async function mountFaultyDisk(mounted: string, directory: string) {
  if (!existsSync('/dev/fuse') || !existsSync(PYTHON)) return undefined;
  const child = spawn(PYTHON, [PROGRAM, mounted, directory], {
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true, // Ctrl-C must end the users of the disk first
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
    /** Sets the fault of one top directory. */
    setFault: async (top: string, fault: DiskFault): Promise<void> => {
      child.stdin.write(`${top} ${fault}\n`);
      await replies.next();
    },
    /** Unmounts the disk; hanging system calls end. */
    close: async (): Promise<void> => {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}
