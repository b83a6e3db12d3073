import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { WorkerProcess } from '../../src/workers/worker-process.ts';
import { WorkerStarter } from '../../src/workers/worker-starter.ts';
import { anyJob, SCRIPTED_WORKER, STARTER } from '../support/processes/worker-pool.ts';
import { RecordedLog } from '../support/recorded-log.ts';

test('a process that was killed, or has ended, begins no job and lets none wait', async () => {
  const starter = new WorkerStarter({
    starterFile: fileURLToPath(STARTER),
    workerFile: fileURLToPath(SCRIPTED_WORKER),
    environment: { PATH: '/usr/bin:/bin' },
  });
  onTestFinished(() => starter.stop());
  const { value: way } = await starter.findWays().next();
  if (way === undefined) throw new Error('Nothing starts workers here.');
  let worker: WorkerProcess | undefined;
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  await new Promise<void>((resolve) => {
    worker = new WorkerProcess(
      { starter, way, memoryBytes: 2 ** 30, niceness: 5, log: new RecordedLog() },
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
