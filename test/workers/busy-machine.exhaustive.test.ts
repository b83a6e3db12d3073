import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { afterEach, expect, test } from 'vitest';
import { REAL_WORKER, usePools } from '../support/processes/worker-pool.ts';

const start = usePools();

const busy: ChildProcess[] = [];
afterEach(() => {
  for (const child of busy.splice(0)) child.kill('SIGKILL');
});

test('workers of both lanes start where other processes take all cores', async () => {
  for (let count = 0; count < 4 * availableParallelism(); count += 1) {
    const program = 'process.stdout.write("x", () => { for (;;); })';
    const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'ignore'] });
    busy.push(child);
    await once(child.stdout, 'data');
  }
  // A worker that is not ready after 30 s is killed, and the start fails.
  const { renderer } = await start({ workerFile: REAL_WORKER, workers: { light: 1, heavy: 1 } });
  expect(renderer.readyProcessIdsOf('heavy')).toHaveLength(1);
  expect(renderer.confinement?.priority).toEqual({ light: 5, heavy: 15 });
});
