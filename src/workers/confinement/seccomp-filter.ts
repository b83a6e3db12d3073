import { allowedForDecoders } from './decoder-calls.ts';
import {
  denied,
  deniedAsUnimplemented,
  type FilteredArchitecture,
  filteredArchitectures,
  numbersOf,
  type SystemCalls,
  sockets,
  threads,
} from './system-calls.ts';

/** Seccomp filters as BPF programs (seccomp(2)), little-endian on both processors. */

/** Opcodes (linux/bpf_common.h). */
const LOAD_WORD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const AND = 0x54;
const RETURN = 0x06;

/** Offsets in `struct seccomp_data`; of the first argument, the lower half. */
const SYSTEM_CALL = 0;
const ARCHITECTURE = 4;
const FIRST_ARGUMENT = 16;

/** Return values (seccomp(2)); `ERROR` plus an error number. */
const ALLOW = 0x7fff_0000;
const KILL_PROCESS = 0x8000_0000;
const ERROR = 0x0005_0000;

const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** Architectures (linux/audit.h); any other is a 32-bit program, whose calls have other numbers. */
const AUDIT_ARCHITECTURES: Readonly<Record<FilteredArchitecture, number>> = {
  x64: 0xc000_003e,
  arm64: 0xc000_00b7,
};

/** First number of x32 calls on x64. */
const FIRST_X32_CALL = 0x4000_0000;

const CLONE_THREAD = 0x0001_0000;
const CLONE_NEW_NAMESPACES = 0x7e02_0000;

const AF_UNIX = 1;

/** Formats one instruction; jumps count from the next one. */
function instruction(code: number, constant: number, whenTrue = 0, whenFalse = 0): Uint8Array {
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, code, true);
  view.setUint8(2, whenTrue);
  view.setUint8(3, whenFalse);
  view.setUint32(4, constant, true);
  return bytes;
}

export function isFiltered(architecture: string): architecture is FilteredArchitecture {
  return filteredArchitectures.some((known) => known === architecture);
}

/** Allows all calls that are not listed: a worker's needs change with Node and libvips, an attacker's do not. */
export function assembleFilter(architecture: FilteredArchitecture): Uint8Array {
  const numbers = (calls: SystemCalls): number[] => numbersOf(calls, architecture);
  return Buffer.concat([
    ...loadSystemCall(architecture),
    ...numbers(denied).flatMap((call) => refuse(call, EPERM)),
    ...numbers(deniedAsUnimplemented).flatMap((call) => refuse(call, ENOSYS)),
    ...allowThreads(architecture),
    ...numbers(sockets).flatMap((call) => allowIf(call, 0xffff_ffff, AF_UNIX, EAFNOSUPPORT)),
    instruction(RETURN, ALLOW),
  ]);
}

/**
 * Assembles a video decoder's filter, which denies all calls that are not listed. `clone3` fails as unimplemented, so
 * that libc starts threads by `clone`, whose flags the filter can read.
 */
export function assembleDecoderFilter(architecture: FilteredArchitecture): Uint8Array {
  return Buffer.concat([
    ...loadSystemCall(architecture),
    ...numbersOf(deniedAsUnimplemented, architecture).flatMap((call) => refuse(call, ENOSYS)),
    ...allowThreads(architecture),
    ...numbersOf(allowedForDecoders, architecture).flatMap((call) => [
      instruction(JUMP_IF_EQUAL, call, 0, 1),
      instruction(RETURN, ALLOW),
    ]),
    instruction(RETURN, ERROR + EPERM),
  ]);
}

/** Loads the number of the call; kills the process for a call of another architecture. */
function loadSystemCall(architecture: FilteredArchitecture): Uint8Array[] {
  return [
    instruction(LOAD_WORD, ARCHITECTURE),
    instruction(JUMP_IF_EQUAL, AUDIT_ARCHITECTURES[architecture], 1),
    instruction(RETURN, KILL_PROCESS),
    instruction(LOAD_WORD, SYSTEM_CALL),
    ...(architecture === 'x64'
      ? [instruction(JUMP_IF_AT_LEAST, FIRST_X32_CALL, 0, 1), instruction(RETURN, KILL_PROCESS)]
      : []),
  ];
}

/** Allows new threads, but neither processes nor threads with their own namespaces. */
function allowThreads(architecture: FilteredArchitecture): Uint8Array[] {
  return numbersOf(threads, architecture).flatMap((call) =>
    allowIf(call, CLONE_THREAD | CLONE_NEW_NAMESPACES, CLONE_THREAD, EPERM),
  );
}

function refuse(call: number, error: number): Uint8Array[] {
  return [instruction(JUMP_IF_EQUAL, call, 0, 1), instruction(RETURN, ERROR + error)];
}

/** Allows a call if its masked first argument has a value; otherwise the call fails. */
function allowIf(call: number, mask: number, value: number, error: number): Uint8Array[] {
  return [
    instruction(JUMP_IF_EQUAL, call, 0, 5),
    instruction(LOAD_WORD, FIRST_ARGUMENT),
    instruction(AND, mask),
    instruction(JUMP_IF_EQUAL, value, 0, 1),
    instruction(RETURN, ALLOW),
    instruction(RETURN, ERROR + error),
  ];
}
