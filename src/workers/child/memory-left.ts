import { readFileSync } from 'node:fs';

/** Memory that may be gone without a fault of anyone: fragments, and what V8 has not collected yet, in bytes. */
const SLACK_BYTES = 32 * 1024 ** 2;

/** Maximum size of one trial, in bytes; larger ones may be refused for their size alone (proc(5), `overcommit_memory`). */
const TRIAL_BYTES = 64 * 1024 ** 2;

/**
 * Whether the machine still grants what this process may have by its own bound (RLIMIT_DATA). If it does not, the
 * machine is short of memory, and a failed allocation is not the original's fault. The memory is not touched, so that it
 * costs nothing.
 */
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

/** Reads the bytes up to the bound of private memory; 0 if it is unlimited, or if this is not Linux. */
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
