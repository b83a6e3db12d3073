import { spawnSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createProgress } from '../../src/cli/progress.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const MIB = 1024 ** 2;

/** First column, then "erase in line" (ECMA-48 §8.3.9, §8.3.41). */
const CLEAR_LINE = '\u001b[1G\u001b[2K';

/** Stores a file that takes three seconds to arrive; returns the output of standard error. */
async function putSlowly(wrap: (command: string) => [program: string, ...args: string[]]) {
  const { path: directory } = await useTemporaryDirectory();
  const command =
    '{ head -c 3M /dev/zero; sleep 3; } | "$NODE" bin/darkroom.mjs put attachments/1/2/zeros - >"$STORAGE_DIR/output"';
  const [program, ...args] = wrap(command);
  const { stdout, stderr, status } = spawnSync(program, args, {
    env: { PATH: process.env.PATH, TERM: 'xterm', NODE: process.execPath, STORAGE_DIR: directory },
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  return stdout + stderr;
}

test('put shows its progress on a terminal, and removes it at the end', async () => {
  const output = await putSlowly((command) => ['script', '-qec', command, '/dev/null']);
  expect(output).toContain('attachments/1/2/zeros: 3.0 MiB');
  expect(output.endsWith(CLEAR_LINE)).toBe(true);
  expect(output).not.toContain('\n');
});

test('put writes plain lines without a terminal', async () => {
  const output = await putSlowly((command) => ['sh', '-c', command]);
  expect(output).toBe('attachments/1/2/zeros: 3.0 MiB\nattachments/1/2/zeros: 3.0 MiB\n');
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function openStream(isTTY: boolean) {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY });
  return { stream, read: (): string => stream.read() ?? '' };
}

test.each([false, true])(
  'shows nothing of work that takes less than a second; terminal: %s',
  async (isTTY) => {
    const { stream, read } = openStream(isTTY);
    const progress = createProgress(stream, 'key', MIB);
    progress.advance(MIB);
    await vi.advanceTimersByTimeAsync(900);
    progress.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(read()).toBe('');
  },
);

test('writes a line every ten seconds without a terminal, and a last one', async () => {
  const { stream, read } = openStream(false);
  const progress = createProgress(stream, 'key', 4 * MIB);
  progress.advance(MIB);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(read()).toBe('key: 25 %, 1.0 MiB of 4.0 MiB\n');
  progress.advance(2 * MIB);
  await vi.advanceTimersByTimeAsync(9_900);
  expect(read()).toBe('');
  await vi.advanceTimersByTimeAsync(100);
  expect(read()).toBe('key: 75 %, 3.0 MiB of 4.0 MiB\n');
  progress.advance(MIB);
  progress.stop();
  expect(read()).toBe('key: 100 %, 4.0 MiB of 4.0 MiB\n');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(read()).toBe('');
});

test('draws a bar on a terminal', async () => {
  const { stream, read } = openStream(true);
  const progress = createProgress(stream, 'key', 4 * MIB);
  progress.advance(MIB);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(read()).toContain(`key: [${'='.repeat(10)}${'-'.repeat(30)}] 25 %, 1.0 MiB of 4.0 MiB`);
  progress.stop();
  expect(read().endsWith(CLEAR_LINE)).toBe(true);
});
