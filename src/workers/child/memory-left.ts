import { readFileSync } from 'node:fs';

/** Memory that fragments, and what V8 has not collected yet, may take, in bytes. */
const SLACK_BYTES = 32 * 1024 ** 2;

/** Maximum size of one trial, in bytes: larger ones may be refused for their size (proc(5), `overcommit_memory`). */
const TRIAL_BYTES = 64 * 1024 ** 2;

/**
 * Whether the machine still grants the memory that RLIMIT_DATA allows. If not, a failed allocation is the machine's
 * fault, not the original's. The trials touch no memory.
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

/** Reads the bytes left below the bound of private memory; 0 if it is unlimited, and outside of Linux. */
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
