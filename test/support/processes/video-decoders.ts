import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll } from 'vitest';
import { makeTemporaryDirectory } from '../temporary-directory.ts';
import { readProcessFile } from './worker-ids.ts';

/** Whether tests can compile their own decoder. */
export const hasCompiler = spawnSync('gcc', ['--version']).status === 0;

/** Settings of a pool whose decoder needs a full sandbox. */
export const wholeDecoder = {
  program: 'auto',
  mayBeWeaker: false,
  memoryBytes: 2 ** 29,
  timeoutMs: 15_000,
} as const;

/** Compiles one malicious decoder for all tests of a block. */
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

/** Finds all processes of a program, confined or not. */
export function findProcessesOf(program: string): number[] {
  const isOne = (name: string) => readProcessFile(name, 'cmdline').split('\0')[0] === program;
  return readdirSync('/proc').filter(isOne).map(Number);
}
