import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { arch } from 'node:os';
import { describe, expect, test } from 'vitest';
import { listExposures, readConfinement } from '../../../src/workers/confinement/report.ts';
import {
  assembleDecoderFilter,
  assembleFilter,
  isFiltered,
} from '../../../src/workers/confinement/seccomp-filter.ts';
import {
  denied,
  deniedAsUnimplemented,
  numbersOf,
  sockets,
  threads,
} from '../../../src/workers/confinement/system-calls.ts';

const X64 = 0xc000_003e;
const ARM64 = 0xc000_00b7;
const I386 = 0x4000_0003;
const ARM = 0x4000_0028;
const [ALLOWED, KILLED] = [0x7fff_0000, 0x8000_0000];
const [EPERM, ENOSYS, EAFNOSUPPORT] = [1, 38, 97].map((error) => 0x0005_0000 + error);

/** Runs a filter for a call (seccomp(2)): a second implementation of the BPF instructions that it uses. */
function run(program: Uint8Array, architecture: number, call: number, argument = 0n): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call, 0);
  data.writeUInt32LE(architecture, 4);
  data.writeBigUInt64LE(argument, 16);
  const code = Buffer.from(program);
  let accumulator = 0;
  for (let at = 0; at < code.length; at += 8) {
    const constant = code.readUInt32LE(at + 4);
    const jump = (isTrue: boolean): number => 8 * code.readUInt8(at + (isTrue ? 2 : 3));
    const operation = code.readUInt16LE(at);
    if (operation === 0x20) accumulator = data.readUInt32LE(constant);
    else if (operation === 0x54) accumulator = (accumulator & constant) >>> 0;
    else if (operation === 0x15) at += jump(accumulator === constant);
    else if (operation === 0x35) at += jump(accumulator >= constant);
    else if (operation === 0x06) return constant;
    else throw new Error(`Unknown instruction ${operation}.`);
  }
  throw new Error('The program does not return.');
}

describe.each([
  [
    'x64',
    X64,
    { read: 0, clone: 56, socket: 41, socketpair: 53, ptrace: 101, execve: 59, kill: 62 },
  ],
  [
    'arm64',
    ARM64,
    { read: 63, clone: 220, socket: 198, socketpair: 199, ptrace: 117, execve: 221, kill: 129 },
  ],
] as const)('the filter of system calls for %s', (name, own, numbers) => {
  const program = assembleFilter(name);
  const verdict = (call: number, argument?: bigint) => run(program, own, call, argument);

  test('of a decoder denies all calls except those that it needs, and kills a process of another architecture', () => {
    const decoder = assembleDecoderFilter(name);
    const allowed = Array.from({ length: 500 }, (_, call) => call).filter(
      (call) => run(decoder, own, call) === ALLOWED,
    );
    expect(allowed.length).toBeLessThan(70);
    expect(allowed).toEqual(expect.arrayContaining([numbers.read, numbers.execve]));
    const { clone, socket, socketpair, ptrace, kill } = numbers;
    for (const call of [clone, socket, socketpair, ptrace, kill])
      expect(run(decoder, own, call)).toBe(EPERM);
    // `clone3` and io_uring, as if the kernel lacked them.
    for (const call of [435, 425]) expect(run(decoder, own, call)).toBe(ENOSYS);
    expect(run(decoder, I386, numbers.read)).toBe(KILLED);
  });

  test('kills a process that calls with another architecture', () => {
    for (const other of [X64, ARM64, I386, ARM, 0].filter((architecture) => architecture !== own)) {
      expect(run(program, other, numbers.read)).toBe(KILLED);
    }
    expect(verdict(numbers.read)).toBe(ALLOWED);
    // x32 has the numbers of x64 with one more bit.
    const x32 = verdict(0x4000_0000 + numbers.read);
    expect(x32).toBe(name === 'x64' ? KILLED : ALLOWED);
  });

  test('denies the listed calls, and no others', () => {
    const listed = new Map([
      ...numbersOf(denied, name).map((call) => [call, EPERM] as const),
      ...numbersOf(deniedAsUnimplemented, name).map((call) => [call, ENOSYS] as const),
    ]);
    const conditions = new Set([...numbersOf(threads, name), ...numbersOf(sockets, name)]);
    for (let call = 0; call < 600; call += 1) {
      if (!conditions.has(call))
        expect([call, verdict(call)]).toEqual([call, listed.get(call) ?? ALLOWED]);
    }
    expect(verdict(numbers.ptrace)).toBe(EPERM);
    expect(verdict(numbers.execve)).toBe(ALLOWED);
    expect(verdict(numbers.kill)).toBe(ALLOWED);
  });

  test.each([
    ['a worker', assembleFilter],
    ['a decoder', assembleDecoderFilter],
  ])('allows %s to create threads, but no process or namespace', (_, assemble) => {
    const verdict = (argument: bigint) => run(assemble(name), own, numbers.clone, argument);
    // The flags of glibc's threads; then of `fork`, `vfork` and containers.
    expect(verdict(0x003d_0f00n)).toBe(ALLOWED);
    expect(verdict(0x0120_0011n)).toBe(EPERM);
    expect(verdict(0x0000_4111n)).toBe(EPERM);
    for (const bit of [17n, 25n, 26n, 27n, 28n, 29n, 30n]) {
      const namespace = 1n << bit;
      expect(verdict(namespace)).toBe(EPERM);
      expect(verdict(0x003d_0f00n | namespace)).toBe(EPERM);
    }
  });

  test('allows Unix sockets, and no others', () => {
    for (const call of [numbers.socket, numbers.socketpair]) {
      for (const family of [0n, 2n, 10n, 16n, 17n, 40n])
        expect(verdict(call, family)).toBe(EAFNOSUPPORT);
      expect(verdict(call, 1n)).toBe(ALLOWED);
      // The kernel reads 32 bits of the argument.
      expect(verdict(call, 0xffff_ffff_0000_0001n)).toBe(ALLOWED);
      expect(verdict(call, 0x1_0000_0002n)).toBe(EAFNOSUPPORT);
    }
  });
});

const processor = arch();
const bubblewrap = spawnSync('bwrap', ['--ro-bind', '/', '/', 'true']);

test.skipIf(bubblewrap.status !== 0 || !isFiltered(processor))(
  '(bubblewrap works) a filter is reported only if the sandbox installs it',
  async () => {
    const filter = isFiltered(processor) ? assembleFilter(processor) : expect.fail('no filter');
    const words = ['--ro-bind', '/', '/', '--seccomp', '3', 'sh', '-c', 'echo $$; read end'];
    const child = spawn('bwrap', words, { stdio: ['pipe', 'pipe', 'inherit', 'pipe'] });
    try {
      const input = child.stdio[3];
      if (input && 'end' in input) input.end(filter);
      const [line] = await once(child.stdout ?? expect.fail('no output'), 'data');
      const processIds = { light: Number(String(line)), heavy: undefined };
      const read = (hasFilter: boolean) => {
        const sandbox = { name: 'bubblewrap', isIsolated: true, hasOwnUsers: false } as const;
        const compose = () => expect.fail('starts no process');
        return readConfinement({ ...sandbox, hasFilter, compose }, [], processIds);
      };
      expect(read(true).isFiltered).toBe(true);
      expect(read(false).isFiltered).toBe(false);
      expect(listExposures(read(false))).toContain('try any system call on the kernel');
    } finally {
      child.kill('SIGKILL');
    }
  },
);
