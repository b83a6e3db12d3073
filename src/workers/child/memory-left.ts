import { readFileSync } from 'node:fs';

/** Memory for fragmentation and garbage that V8 has not collected yet, in bytes. */
const SLACK_BYTES = 32 * 1024 ** 2;

/** Maximum trial allocation in bytes: the kernel may refuse larger ones (proc(5), `overcommit_memory`). */
const TRIAL_BYTES = 64 * 1024 ** 2;

/** Whether trial allocations get all that RLIMIT_DATA allows; otherwise the machine is at fault for a failure. */
export function hasMemoryLeft(): boolean {
  const trials: Uint8Array[] = [];
  try {
    const left = readLeftBytes() - SLACK_BYTES;
    for (let bytes = 0; bytes + TRIAL_BYTES <= left; bytes += TRIAL_BYTES) {
      trials.push(Buffer.allocUnsafeSlow(TRIAL_BYTES));
    }
    return true;
  } catch {
    return false;
  }
}

/** Reads the remaining bytes below the limit of private memory; 0 if unlimited, or not on Linux. */
function readLeftBytes(): number {
  try {
    const [, bound = '0'] =
      /^Max data size +(\d+) /m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    const [, used = '0'] =
      /^VmData:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return Number(bound) - Number(used) * 1024;
  } catch {
    return 0;
  }
}
