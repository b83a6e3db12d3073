import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll } from 'vitest';
import { makeTemporaryDirectory } from '../temporary-directory.ts';
import { readProcessFile } from './worker-ids.ts';

/** Whether a decoder of our own can be compiled, and confined whole. */
export const hasCompiler = spawnSync('gcc', ['--version']).status === 0;

/** Settings of a pool whose decoder must be confined whole. */
export const wholeDecoder = {
  program: 'auto',
  mayBeWeaker: false,
  memoryBytes: 2 ** 29,
  timeoutMs: 15_000,
} as const;

/** The same with one decoder in the hands of an attacker for all tests of a block, compiled. */
export function shareMaliciousDecoder() {
  const decoder = { ...wholeDecoder, program: '' };
  beforeAll(async () => {
    const { path, remove } = await makeTemporaryDirectory();
    decoder.program = join(path, 'malicious-decoder');
    const source = 'test/support/processes/malicious-decoder.c';
    execFileSync('gcc', ['-O1', '-static', '-o', decoder.program, source]);
    return remove;
  });
  return decoder;
}

/** Finds the processes of a program: all of them, confined or not. */
export function findProcessesOf(program: string): number[] {
  const isOne = (name: string) => readProcessFile(name, 'cmdline').split('\0')[0] === program;
  return readdirSync('/proc').filter(isOne).map(Number);
}
