import { readdirSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { WorkerLost } from '../../src/pipeline/ports.ts';
import { createPool, isAlive, usePools } from '../support/processes/worker-pool.ts';
import type { RecordedLog } from '../support/recorded-log.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const start = usePools();
const startShared = usePools(afterAll);

/** Until what was given to an idle worker is on its way to it. */
const sent = () => new Promise((resolve) => setImmediate(resolve));

const processIdIn = (reply: string): number => Number(reply.split(' ')[0]);
const two = { light: 2, heavy: 0 };
const unharmed = { restarts: 0, kills: 0, recycles: 0 };

/** The child of ours that has started a worker, whatever is between the two. */
function starterOf(worker: number): number {
  const status = readFileSync(`/proc/${worker}/status`, 'utf8');
  const parent = Number(/^PPid:\t(\d+)$/m.exec(status)?.[1]);
  return parent === process.pid ? worker : starterOf(parent);
}

describe('the worker pool', () => {
  test('starts its workers before the first job and spreads the work over them', async () => {
    const { renderer, say } = await start({ workers: two });
    expect(renderer.processIds).toHaveLength(2);
    const replies = await Promise.all(['a', 'b', 'c', 'd'].map((command) => say(command)));
    expect(new Set(replies.map(processIdIn))).toEqual(new Set(renderer.processIds));
  });

  test('distinguishes a bad original from a bug of ours; neither costs a worker', async () => {
    const { renderer, say } = await start();
    await expect(say('corrupt')).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    const bug: unknown = await say('bug').catch((error: unknown) => error);
    expect(bug).toBeInstanceOf(Error);
    expect(bug).not.toHaveProperty('code');
    expect(renderer.counters).toEqual(unharmed);
  });

  // The next wait for processes most of the time, each for its own.
  test.concurrent('kills a job at its deadline, whatever it does, and goes on', async ({
    expect,
  }) => {
    const { renderer, say } = await startShared({ timeoutMs: 300 });
    const [hanging = 0] = renderer.processIds;
    const late = { code: 'TRANSFORM_TIMEOUT', cause: expect.any(WorkerLost) };
    await expect(say('hang')).rejects.toMatchObject(late);
    const next = await say('next', { timeoutMs: 10_000 });
    expect(next).toMatch(/ next$/);
    expect(processIdIn(next)).not.toBe(hanging);
    await expect.poll(() => isAlive(hanging)).toBe(false);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
    await expect(say('hang')).rejects.toMatchObject(late);
  });

  test.concurrent.for(['crash', 'exit', 'orphan'])(
    'a job that ends its worker (%s), and then a fresh one, fails alone',
    { timeout: 15_000 }, // less than an orphan holds the channel for
    async (command, { expect }) => {
      const { renderer, say } = await startShared({ workers: two });
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
      expect(renderer.counters).toEqual({ restarts: 2, kills: 0, recycles: 0 });
    },
  );

  test.concurrent('goes on with other workers where the process that has started them is killed', async ({
    expect,
  }) => {
    const { renderer, log, say } = await startShared();
    const [worker = 0] = renderer.processIds;
    process.kill(starterOf(worker), 'SIGKILL');
    await expect.poll(() => renderer.counters.restarts).toBe(1);
    expect(processIdIn(await say('anything'))).not.toBe(worker);
    await expect.poll(() => isAlive(worker)).toBe(false);
    expect(JSON.stringify(log.entries)).toContain('the end of the process that starts workers');
  });

  test.concurrent('gives up a worker that does not end when it is killed, and keeps the others', async ({
    expect,
    onTestFinished,
  }) => {
    const starterFile = new URL('../support/processes/powerless-starter.mjs', import.meta.url);
    const { renderer, say, log } = await startShared({
      workers: { light: 1, heavy: 1 },
      starterFile,
    });
    const [stuck = 0] = renderer.processIdsOf('light');
    const others = renderer.processIdsOf('heavy');
    process.kill(stuck, 'SIGSTOP');
    onTestFinished(() => void process.kill(stuck, 'SIGKILL'));
    const late = { code: 'TRANSFORM_TIMEOUT' };
    await expect(say('anything', { timeoutMs: 100 })).rejects.toMatchObject(late);
    await expect.poll(() => renderer.readyProcessIdsOf('light').length).toBe(1);
    expect(await say('next')).toMatch(/ next$/);
    expect(isAlive(stuck)).toBe(true);
    expect(renderer.readyProcessIdsOf('heavy')).toEqual(others);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
    expect(JSON.stringify(log.entries)).toContain('no end although it was killed');
  });

  test('that cannot start says so, and takes no value for shell text', async () => {
    const { path } = await useTemporaryFolder();
    const shellText = `/$(touch ${path}/a); touch ${path}/b; \`touch ${path}/c\``;
    for (const file of ['/nowhere/worker.mjs', shellText])
      await expect(start({ workerFile: pathToFileURL(file) })).rejects.toThrow('do not start');
    expect(readdirSync(path)).toEqual([]);
  });

  test('that is stopped while it starts has no process, at whatever step that is', async () => {
    const pool = createPool();
    const starting = pool.start();
    pool.stop(); // before it has found out how to start one
    await expect(starting).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect(pool.processIds).toEqual([]);
  });

  test('leaves no process behind when it stops, and no job waiting', async () => {
    const { renderer, say } = await start({ workers: two, timeoutMs: 60_000 });
    const { processIds } = renderer;
    // Two at work, one that waits.
    const jobs = ['hang', 'hang', 'wait'].map((command) => say(command));
    await sent();
    renderer.stop();
    const cause = { message: 'The render workers are stopped.' };
    for (const job of jobs) await expect(job).rejects.toMatchObject({ code: 'OVERLOADED', cause });
    await expect.poll(() => processIds.filter(isAlive)).toEqual([]);
    await expect(say('too late')).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect(renderer.counters.restarts).toBe(0);
  });
});

describe('a worker killed from outside', () => {
  /** Kills the next worker that stands still, after so many others that have. */
  const killWorker = async (log: RecordedLog, before: number): Promise<void> => {
    const standing = () =>
      log.entries.flatMap(({ details }) =>
        'line' in details && 'processId' in details ? [Number(details.processId)] : [],
      );
    await expect.poll(() => standing().length).toBeGreaterThan(before);
    process.kill(standing()[before] ?? 0, 'SIGKILL');
  };

  test('in mid-job fails nothing: a fresh worker does its job', async () => {
    const { renderer, say, log } = await start({ workers: two });
    const old = new Set(renderer.processIds);
    // Neither is fresh any more.
    await Promise.all([say('a'), say('b')]);
    const response = say('stand-still 1');
    await killWorker(log, 0);
    expect(await response).toMatch(/ went on$/);
    expect(old).not.toContain(processIdIn(await response));
    expect(renderer.counters).toEqual({ restarts: 1, kills: 0, recycles: 0 });
    expect(log.count('a job whose render worker has ended is retried in a fresh one')).toBe(1);
  });

  test('is blamed on its job where the fresh worker ends, too, and no other does', async () => {
    const { say, log } = await start();
    const response = say('stand-still').catch((error: unknown) => error);
    await killWorker(log, 0);
    await killWorker(log, 1);
    const lost = { code: 'UNPROCESSABLE_MEDIA', cause: expect.any(WorkerLost) };
    expect(await response).toMatchObject(lost);
  });

  test('is not blamed on its job where others end with the fresh worker', async () => {
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

  test('between jobs fails no job, whether its end is noticed or not', async () => {
    const { renderer, say } = await start({ workers: two });
    for (let round = 0; round < 3; round += 1) {
      await expect.poll(() => renderer.readyProcessIdsOf('light').length).toBe(2);
      for (const processId of renderer.processIds) process.kill(processId, 'SIGKILL');
      expect(await say('next')).toMatch(/ next$/);
    }
  });

  test('before it begins leaves its job to another; after three of them that may be tried later', async () => {
    const { renderer, say } = await start();
    await expect(say('die before it begins')).rejects.toMatchObject({
      code: 'OVERLOADED',
      bottleneck: 'workers',
      retryAfterSeconds: 1,
      cause: { message: 'No render worker lived to begin the job.' },
    });
    await expect.poll(() => renderer.counters.restarts).toBe(3);
  });
});

describe('a stop by its caller', () => {
  const reason = new Error('the result is not wanted any more');

  test('ends a running job with its worker; one that waits costs none', async () => {
    const { renderer, say } = await start({ timeoutMs: 60_000 });
    const [first = 0] = renderer.processIds;
    const [runner, waiter] = [new AbortController(), new AbortController()];
    const running = say('hang', { signal: runner.signal });
    const waiting = say('crash', { signal: waiter.signal });
    const next = say('next');
    await sent();
    waiter.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(say('crash', { signal: waiter.signal })).rejects.toBe(reason);
    expect(renderer.processIds).toEqual([first]);
    runner.abort(reason);
    await expect(running).rejects.toBe(reason);
    expect(processIdIn(await next)).not.toBe(first);
    await expect.poll(() => isAlive(first)).toBe(false);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
  });

  test('before the job is on its way, or after the response, changes nothing', async () => {
    const { renderer, say } = await start({ timeoutMs: 60_000 });
    const [early, late] = [new AbortController(), new AbortController()];
    const job = say('hang', { signal: early.signal });
    early.abort(reason);
    await expect(job).rejects.toBe(reason);
    const first = await say('first', { signal: late.signal });
    late.abort(reason);
    expect(processIdIn(await say('second'))).toBe(processIdIn(first));
    expect(renderer.counters).toEqual(unharmed);
  });
});

describe('heavy workers beyond the first', () => {
  const workers = { light: 1, heavy: 2 };

  test('start when all are at work, no more than there may be, and again when they die', async () => {
    const { renderer, say } = await start({ workers, timeoutMs: 60_000 });
    const first = renderer.processIdsOf('heavy');
    expect([first.length, renderer.wantedOf('heavy')]).toEqual([1, 1]);
    for (let round = 0; round < 3; round += 1) await say('one', { lane: 'heavy' });
    expect(renderer.processIdsOf('heavy')).toEqual(first);
    const jobs = ['hang', 'hang', 'wait'].map((text) => say(text, { lane: 'heavy' }));
    for (const job of jobs) job.catch(() => undefined);
    await expect.poll(() => renderer.readyProcessIdsOf('heavy').length).toBe(2);
    expect(renderer.processIdsOf('heavy')).toHaveLength(2);
    expect(renderer.wantedOf('heavy')).toBe(2);
    expect(renderer.counters).toEqual(unharmed);
    const killed = renderer.processIdsOf('heavy');
    for (const processId of killed) process.kill(processId, 'SIGKILL');
    await expect.poll(() => renderer.counters.restarts).toBe(2);
    await expect.poll(() => renderer.readyProcessIdsOf('heavy').length).toBe(2);
    expect(renderer.processIdsOf('heavy').filter((id) => killed.includes(id))).toEqual([]);
    renderer.stop();
    await Promise.allSettled(jobs);
  });

  test('end when they have been idle, and start again', async () => {
    const { renderer, say } = await start({ workers, maxIdleMs: 100 });
    for (let round = 0; round < 3; round += 1) {
      const texts = await Promise.all(['a', 'b'].map((text) => say(text, { lane: 'heavy' })));
      expect(texts.map((text) => text.split(' ')[1])).toEqual(['a', 'b']);
      // Of one that is about to start there is no process yet.
      const sizes = () => [renderer.wantedOf('heavy'), renderer.processIdsOf('heavy').length];
      await expect.poll(sizes).toEqual([1, 1]);
    }
    expect(renderer.counters).toEqual(unharmed);
    expect(renderer.processIdsOf('light')).toHaveLength(1);
  });
});
