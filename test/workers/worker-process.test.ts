import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { findLaunchers } from '../../src/workers/confinement/launchers.ts';
import { WorkerProcess } from '../../src/workers/worker-process.ts';
import { anyJob, SCRIPTED_WORKER } from '../support/processes/worker-pool.ts';
import { RecordedLog } from '../support/recorded-log.ts';

const workerFile = fileURLToPath(SCRIPTED_WORKER);

test('a process that was killed, or has ended, begins no job and lets none wait', async () => {
  const environment = { PATH: '/usr/bin:/bin' };
  const launchers = findLaunchers({ workerFile, environment });
  const { value: launcher } = await launchers.next();
  if (launcher === undefined) throw new Error('Nothing starts workers here.');
  let worker: WorkerProcess | undefined;
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  await new Promise<void>((resolve) => {
    worker = new WorkerProcess(
      {
        launcher,
        workerFile,
        memoryBytes: 2 ** 30,
        environment,
        niceness: 5,
        log: new RecordedLog(),
      },
      { onReady: resolve, onEnd: end },
    );
  });
  const run = () =>
    worker?.run(
      { original: Buffer.from('anything'), job: anyJob },
      { timeoutMs: 60_000, signal: new AbortController().signal },
    );
  await expect(run()).resolves.toMatchObject({ kind: 'rendered' });
  worker?.kill('test');
  await expect(run()).resolves.toEqual({ kind: 'not begun' });
  await ended;
  await expect(run()).resolves.toEqual({ kind: 'not begun' });
});
