import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import {
  REAL_WORKER,
  SCRIPTED_WORKER,
  STARTER,
  usePools,
} from '../support/processes/worker-pool.ts';

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

test('where they cannot have a lower priority than light ones, heavy workers get half of the cores', async () => {
  const script = `
      import { WorkerPool } from '${new URL('../../dist/workers/worker-pool.js', import.meta.url)}';
      const warnings = [];
      const log = { info() {}, error() {}, warn: (details, message) => warnings.push(message) };
      const pool = new WorkerPool({
        workerFile: new URL('${SCRIPTED_WORKER}'),
        starterFile: new URL('${STARTER}'),
        workers: { light: 2, heavy: 2 },
        memoryBytes: { light: 2 ** 30, heavy: 2 ** 30 },
        environment: { PATH: process.env.PATH },
        log,
      });
      await pool.start();
      console.log(JSON.stringify({ slots: pool.slots, warnings }));
      pool.stop();
      process.exit();
    `;
  // Of this process, all others inherit the lowest priority there is.
  const args = ['-n', '19', process.execPath, '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)('nice', args);
  expect(JSON.parse(stdout)).toEqual({
    slots: { light: 2, heavy: 1 },
    warnings: [
      'the system does not let heavy renders have a lower priority than light ones: they get half of the cores',
    ],
  });
});
