import { readdirSync } from 'node:fs';
import { setImmediate as immediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { WorkerLost } from '../../src/pipeline/ports.ts';
import { isAlive, readProcessFile } from '../support/processes/worker-ids.ts';
import { createPool, noLosses, sharePool, usePools } from '../support/processes/worker-pool.ts';
import type { RecordedLog } from '../support/recorded-log.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const start = usePools();
const startShared = usePools(afterAll);

const two = { light: 2, heavy: 0 };
/** Long deadline, for a job that ends for another reason. */
const late = { timeoutMs: 60_000 };

const processIdIn = (reply: string): number => Number(reply.split(' ')[0]);

/** Our child process that has started a worker, directly or not. */
function starterOf(worker: number): number {
  const parent = Number(/^PPid:\t(\d+)$/m.exec(readProcessFile(worker, 'status'))?.[1]);
  return parent === process.pid ? worker : starterOf(parent);
}

/** Waits until another worker hangs after `before` others, and kills it. */
async function killWorker(log: RecordedLog, before: number): Promise<void> {
  const hangingIds = () =>
    log.entries.flatMap(({ details }) =>
      'line' in details && 'processId' in details ? [Number(details.processId)] : [],
    );
  await expect.poll(() => hangingIds().length).toBeGreaterThan(before);
  process.kill(hangingIds()[before] ?? 0, 'SIGKILL');
}

describe('a pool of two workers', () => {
  const shared = sharePool({ workers: two });

  test('starts them before the first job, and distributes jobs among them', async () => {
    const { renderer, say } = shared.pool;
    expect(renderer.processIds).toHaveLength(2);
    const replies = await Promise.all(['a', 'b', 'c', 'd'].map((command) => say(command)));
    expect(new Set(replies.map(processIdIn))).toEqual(new Set(renderer.processIds));
  });

  test.each(['crash', 'exit', 'orphan'])(
    'fails only the job that ends its worker and the replacement: %s',
    async (command) => {
      const { renderer, say } = shared.pool;
      const results = await Promise.allSettled([
        say(command),
        ...['a', 'b', 'c', 'd', 'e'].map((text) => say(text)),
      ]);
      expect(results[0]).toMatchObject({
        status: 'rejected',
        reason: { code: 'UNPROCESSABLE_MEDIA', cause: expect.any(WorkerLost) },
      });
      expect(results.slice(1).map(({ status }) => status)).toEqual(Array(5).fill('fulfilled'));
      await expect.poll(() => renderer.readyProcessIdsOf('light').length).toBe(2);
      expect(shared.counted()).toEqual({ ...noLosses, restarts: 2 });
    },
    15_000, // less than the 20 s for which an orphan keeps the channel open
  );

  test('retries the job of a killed worker in a new one', async () => {
    const { renderer, say, log } = shared.pool;
    const old = new Set(renderer.processIds);
    await Promise.all([say('a'), say('b')]);
    const response = say('stand-still 1');
    await killWorker(log, 0);
    expect(await response).toMatch(/ continued$/);
    expect(old).not.toContain(processIdIn(await response));
    expect(shared.counted()).toEqual({ ...noLosses, restarts: 1 });
    expect(log.count('render worker died during a job; retrying in a new worker')).toBe(1);
  });

  test('fails no job if its workers are killed between jobs, even before the pool notices', async () => {
    const { renderer, say } = shared.pool;
    for (let round = 0; round < 3; round += 1) {
      await expect.poll(() => renderer.readyProcessIdsOf('light').length).toBe(2);
      for (const processId of renderer.processIds) process.kill(processId, 'SIGKILL');
      expect(await say('next')).toMatch(/ next$/);
    }
  });
});

describe('a pool of one worker', () => {
  const shared = sharePool();
  const reason = new Error('the result is not wanted any more');

  test('distinguishes a corrupt original from an internal error, and keeps its worker', async () => {
    const { say } = shared.pool;
    await expect(say('corrupt')).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    const bug: unknown = await say('bug').catch((error: unknown) => error);
    expect(bug).toBeInstanceOf(Error);
    expect(bug).not.toHaveProperty('code');
    expect(shared.counted()).toEqual(noLosses);
  });

  test('kills any job at its deadline, and continues', async () => {
    const { renderer, say } = shared.pool;
    const [hanging = 0] = renderer.processIds;
    const hang = () => say('hang', { timeoutMs: 300 });
    const timeout = { code: 'TRANSFORM_TIMEOUT', cause: expect.any(WorkerLost) };
    await expect(hang()).rejects.toMatchObject(timeout);
    const next = await say('next');
    expect(next).toMatch(/ next$/);
    expect(processIdIn(next)).not.toBe(hanging);
    await expect.poll(() => isAlive(hanging)).toBe(false);
    expect(shared.counted()).toEqual({ restarts: 1, kills: 1, recycles: 0 });
    await expect(hang()).rejects.toMatchObject(timeout);
  });

  test('retries a job in its remaining time', async () => {
    const { say } = shared.pool;
    // There would be two crashes if the retry had the full time again.
    const response = say('crash-after 1000', { timeoutMs: 1_600 });
    await expect(response).rejects.toMatchObject({ code: 'TRANSFORM_TIMEOUT' });
    await expect.poll(shared.counted).toEqual({ restarts: 2, kills: 1, recycles: 0 });
  });

  test('reports overload for a job whose worker a signal has stopped', async () => {
    const { renderer, say } = shared.pool;
    const [worker = 0] = renderer.processIds;
    process.kill(worker, 'SIGSTOP');
    const response = say('anything', { timeoutMs: 300 });
    await expect(response).rejects.toMatchObject({ code: 'OVERLOADED', bottleneck: 'workers' });
    expect(await say('next')).toMatch(/ next$/);
    await expect.poll(() => isAlive(worker)).toBe(false);
  });

  test('reports an unprocessable original if only its worker and the replacement are killed', async () => {
    const { say, log } = shared.pool;
    const response = say('stand-still').catch((error: unknown) => error);
    await killWorker(log, 0);
    await killWorker(log, 1);
    const lost = { code: 'UNPROCESSABLE_MEDIA', cause: expect.any(WorkerLost) };
    expect(await response).toMatchObject(lost);
  });

  test('reports overload for a job if three workers die before they begin it', async () => {
    await expect(shared.pool.say('die before it begins')).rejects.toMatchObject({
      code: 'OVERLOADED',
      bottleneck: 'workers',
      retryAfterSeconds: 1,
      cause: { message: 'Every render worker died before the job started.' },
    });
    await expect.poll(() => shared.counted().restarts).toBe(3);
  });

  test('kills the worker of an aborted job, but no worker if the aborted job was still waiting', async () => {
    const { renderer, say } = shared.pool;
    const [first = 0] = renderer.processIds;
    const [runner, waiter] = [new AbortController(), new AbortController()];
    const running = say('hang', { ...late, signal: runner.signal });
    const waiting = say('crash', { ...late, signal: waiter.signal });
    const next = say('next', late);
    await immediate(); // sends the first job to the idle worker
    waiter.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(say('crash', { signal: waiter.signal })).rejects.toBe(reason);
    expect(renderer.processIds).toEqual([first]);
    runner.abort(reason);
    await expect(running).rejects.toBe(reason);
    expect(processIdIn(await next)).not.toBe(first);
    await expect.poll(() => isAlive(first)).toBe(false);
    expect(shared.counted()).toEqual({ restarts: 1, kills: 1, recycles: 0 });
  });

  test('keeps its worker if a job is aborted before it is sent, or after its response', async () => {
    const { say } = shared.pool;
    const [before, after] = [new AbortController(), new AbortController()];
    const job = say('hang', { ...late, signal: before.signal });
    before.abort(reason);
    await expect(job).rejects.toBe(reason);
    const first = await say('first', { signal: after.signal });
    after.abort(reason);
    expect(processIdIn(await say('second'))).toBe(processIdIn(first));
    expect(shared.counted()).toEqual(noLosses);
  });
});

describe('the worker pool', () => {
  // Concurrent, since these two tests mostly wait for processes.
  test.concurrent('continues with other workers when the fork server is killed', async ({
    expect,
  }) => {
    const { renderer, log, say } = await startShared();
    const [worker = 0] = renderer.processIds;
    process.kill(starterOf(worker), 'SIGKILL');
    await expect.poll(() => renderer.counters.restarts).toBe(1);
    expect(processIdIn(await say('anything'))).not.toBe(worker);
    await expect.poll(() => isAlive(worker)).toBe(false);
    expect(JSON.stringify(log.entries)).toContain('the fork server exited');
  });

  test.concurrent('abandons a worker that does not end when it is killed, and keeps the others', async ({
    expect,
    onTestFinished,
  }) => {
    const forkServerFile = new URL(
      '../support/processes/powerless-fork-server.mjs',
      import.meta.url,
    );
    const { renderer, say, log } = await startShared({
      workers: { light: 1, heavy: 1 },
      forkServerFile,
    });
    const [stuck = 0] = renderer.processIdsOf('light');
    const others = renderer.processIdsOf('heavy');
    process.kill(stuck, 'SIGSTOP');
    onTestFinished(() => void process.kill(stuck, 'SIGKILL'));
    const stopped = { code: 'OVERLOADED' };
    await expect(say('anything', { timeoutMs: 100 })).rejects.toMatchObject(stopped);
    await expect.poll(() => renderer.readyProcessIdsOf('light').length).toBe(1);
    expect(await say('next')).toMatch(/ next$/);
    expect(isAlive(stuck)).toBe(true);
    expect(renderer.readyProcessIdsOf('heavy')).toEqual(others);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
    expect(JSON.stringify(log.entries)).toContain('still running after SIGKILL');
  });

  test('reports why it cannot start, and quotes values for the shell', async () => {
    const { path } = await useTemporaryDirectory();
    const shellText = `/$(touch ${path}/a); touch ${path}/b; \`touch ${path}/c\``;
    for (const file of ['/nowhere/worker.mjs', shellText])
      await expect(start({ workerFile: pathToFileURL(file) })).rejects.toThrow('do not start');
    expect(readdirSync(path)).toEqual([]);
  });

  test('starts no process if it is stopped at once', async () => {
    const pool = createPool();
    const starting = pool.start();
    pool.stop(); // before it has found a sandbox
    await expect(starting).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect(pool.processIds).toEqual([]);
  });

  test('leaves no process and no waiting job when it stops', async () => {
    const { renderer, say } = await start({ workers: two });
    const { processIds } = renderer;
    const jobs = ['hang', 'hang', 'wait'].map((command) => say(command, late));
    await immediate();
    renderer.stop();
    const cause = { message: 'The render workers are stopped.' };
    for (const job of jobs) await expect(job).rejects.toMatchObject({ code: 'OVERLOADED', cause });
    await expect.poll(() => processIds.filter(isAlive)).toEqual([]);
    await expect(say('too late')).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect(renderer.counters.restarts).toBe(0);
  });

  test('reports overload if other workers end together with the second one of a job', async () => {
    const { renderer, say, log } = await start({ workers: two });
    const response = say('stand-still').catch((error: unknown) => error);
    await killWorker(log, 0);
    await expect.poll(() => renderer.readyProcessIdsOf('light').length).toBe(2);
    const other = say('stand-still').catch((error: unknown) => error);
    const stands = 'a render worker has written to its standard error';
    await expect.poll(() => log.count(stands)).toBe(3);
    for (const processId of renderer.processIds) process.kill(processId, 'SIGKILL');
    expect(await response).toMatchObject({ code: 'OVERLOADED', bottleneck: 'workers' });
    renderer.stop();
    await other;
  });
});

describe('heavy workers beyond the first', () => {
  const workers = { light: 1, heavy: 2 };

  test('start when all others are busy, up to the maximum, and again after they die', async () => {
    const { renderer, say } = await start({ workers });
    const first = renderer.processIdsOf('heavy');
    expect([first.length, renderer.expectedWorkers('heavy')]).toEqual([1, 1]);
    for (let round = 0; round < 3; round += 1) await say('one', { lane: 'heavy' });
    expect(renderer.processIdsOf('heavy')).toEqual(first);
    const jobs = ['hang', 'hang', 'wait'].map((text) => say(text, { ...late, lane: 'heavy' }));
    for (const job of jobs) job.catch(() => undefined);
    await expect.poll(() => renderer.readyProcessIdsOf('heavy').length).toBe(2);
    expect(renderer.processIdsOf('heavy')).toHaveLength(2);
    expect(renderer.expectedWorkers('heavy')).toBe(2);
    expect(renderer.counters).toEqual(noLosses);
    const killed = renderer.processIdsOf('heavy');
    for (const processId of killed) process.kill(processId, 'SIGKILL');
    await expect.poll(() => renderer.counters.restarts).toBe(2);
    await expect.poll(() => renderer.readyProcessIdsOf('heavy').length).toBe(2);
    expect(renderer.processIdsOf('heavy').filter((id) => killed.includes(id))).toEqual([]);
    renderer.stop();
    await Promise.allSettled(jobs);
  });

  test('end when idle, and start again', async () => {
    const { renderer, say } = await start({ workers, maxIdleMs: 100 });
    for (let round = 0; round < 3; round += 1) {
      const texts = await Promise.all(['a', 'b'].map((text) => say(text, { lane: 'heavy' })));
      expect(texts.map((text) => text.split(' ')[1])).toEqual(['a', 'b']);
      // A worker that is about to start has no process yet.
      const sizes = () => [
        renderer.expectedWorkers('heavy'),
        renderer.processIdsOf('heavy').length,
      ];
      await expect.poll(sizes).toEqual([1, 1]);
    }
    expect(renderer.counters).toEqual(noLosses);
    expect(renderer.processIdsOf('light')).toHaveLength(1);
  });
});

describe('a worker due for recycling', () => {
  const shared = sharePool({ maxJobs: 5, maxRssBytes: 1_000 });
  const next = async () => processIdIn(await shared.pool.say('which'));

  test('is replaced when it reports more memory than the limit', async () => {
    const { renderer, say } = shared.pool;
    const first = Number(await say('grow 1000'));
    expect(await next()).toBe(first);
    expect(renderer.processIds).toEqual([first]);
    expect(Number(await say('grow 1001'))).toBe(first);
    // The next job waits for the new worker.
    expect(await next()).not.toBe(first);
    expect(isAlive(first)).toBe(false);
    expect(shared.counted()).toEqual({ ...noLosses, recycles: 1 });
  });

  test('is replaced again if its replacement is killed, and the waiting job succeeds', async () => {
    const { renderer, say } = shared.pool;
    const first = Number(await say('grow 1001'));
    expect(first).toBeGreaterThan(0);
    const response = say('rest 1500');
    // Until it is ready, a signal might kill only bubblewrap, and the process that bubblewrap starts would do the job.
    const ready = () => renderer.readyProcessIdsOf('light');
    await expect.poll(() => [shared.counted().recycles, ready().length]).toEqual([1, 1]);
    const [second = 0] = ready();
    process.kill(second, 'SIGKILL');
    expect([first, second]).not.toContain(processIdIn(await response));
    expect(shared.counted()).toEqual({ restarts: 1, kills: 0, recycles: 1 });
  });

  test('is replaced when memory runs out, and its job is retried once in a new one', async () => {
    const first = await next();
    expect(processIdIn(await shared.pool.say('too-large-later'))).not.toBe(first);
    expect(shared.counted()).toEqual({ ...noLosses, recycles: 1 });
    // By now, the new worker has done a job.
    await expect(shared.pool.say('too-large')).rejects.toMatchObject({ code: 'MEDIA_TOO_LARGE' });
    expect(shared.counted()).toEqual({ ...noLosses, recycles: 2 });
  });

  test('is replaced after the maximum number of jobs, without losing one', async () => {
    const { log } = shared.pool;
    const seen = new Set<number>();
    for (let round = 0; shared.counted().recycles < 2; round += 1) {
      expect(round).toBeLessThan(5_000);
      seen.add(await next());
    }
    expect(seen.size).toBeGreaterThanOrEqual(3);
    // Not a failure: only `info` entries, and no restart counted.
    expect(shared.counted()).toEqual({ ...noLosses, recycles: 2 });
    expect(new Set(log.entries.map(({ level }) => level))).toEqual(new Set(['info']));
  });
});
