import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { WorkerLost } from '../../src/pipeline/ports.ts';
import { WorkerPool } from '../../src/workers/worker-pool.ts';
import { isAlive, poolOptions, usePools } from '../support/processes/worker-pool.ts';
import type { RecordedLog } from '../support/recorded-log.ts';

const start = usePools();

/** For a process to start or end on a busy machine. */
const soon = { timeout: 20_000 };

/** Until what was given to an idle worker is on its way to it. */
const sent = () => new Promise((resolve) => setImmediate(resolve));

const processIdIn = (reply: string): number => Number(reply.split(' ')[0]);

/** The child of ours that has started a worker, whatever is between the two. */
function starterOf(worker: number): number {
  const status = readFileSync(`/proc/${worker}/status`, 'utf8');
  const parent = Number(/^PPid:\t(\d+)$/m.exec(status)?.[1]);
  return parent === process.pid ? worker : starterOf(parent);
}

describe('the worker pool', () => {
  test('starts its workers before the first job and spreads the work over them', async () => {
    const { renderer, say } = await start({ workers: { light: 2, heavy: 0 } });
    expect(renderer.processIds).toHaveLength(2);
    const replies = await Promise.all(['a', 'b', 'c', 'd'].map((command) => say(command)));
    expect(new Set(replies.map(processIdIn))).toEqual(new Set(renderer.processIds));
  });

  test('kills a job at its deadline, whatever it does, and goes on', async () => {
    const { renderer, say } = await start({ timeoutMs: 300 });
    const [hanging = 0] = renderer.processIds;
    await expect(say('hang')).rejects.toMatchObject({
      code: 'TRANSFORM_TIMEOUT',
      cause: expect.any(WorkerLost),
    });
    const next = await say('next');
    expect(next).toMatch(/ next$/);
    expect(processIdIn(next)).not.toBe(hanging);
    await expect.poll(() => isAlive(hanging), soon).toBe(false);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
  });

  test('gives a job more time where its worker had less of a core than that, and none where it had it', async () => {
    const { say } = await start();
    const times = { timeoutMs: 200, starvedTimeoutMs: 60_000 };
    expect(await say('rest 500', times)).toMatch(/ rested$/);
    await expect(say('hang', times)).rejects.toMatchObject({ code: 'TRANSFORM_TIMEOUT' });
    const late = say('rest 20000', { timeoutMs: 50, starvedTimeoutMs: 300 });
    await expect(late).rejects.toMatchObject({ code: 'TRANSFORM_TIMEOUT' });
  });

  test.each(['crash', 'exit', 'orphan'])(
    'a job that ends its worker (%s), and then a fresh one, fails alone',
    async (command) => {
      const { renderer, say } = await start({ workers: { light: 2, heavy: 0 } });
      const results = await Promise.allSettled([
        say(command),
        ...['a', 'b', 'c', 'd', 'e'].map((text) => say(text)),
      ]);
      expect(results[0]).toMatchObject({
        status: 'rejected',
        reason: { code: 'UNPROCESSABLE_MEDIA', cause: expect.any(WorkerLost) },
      });
      expect(results.slice(1).map(({ status }) => status)).toEqual(Array(5).fill('fulfilled'));
      await expect.poll(() => renderer.readyProcessIdsOf('light').length, soon).toBe(2);
      expect(renderer.counters).toEqual({ restarts: 2, kills: 0, recycles: 0 });
    },
    15_000, // less than an orphan holds the channel for
  );

  describe('a worker killed from outside in mid-job', () => {
    /** Kills the next worker that stands still, after so many others that have. */
    const killWorker = async (log: RecordedLog, before: number): Promise<void> => {
      const standing = () =>
        log.entries.flatMap(({ details }) =>
          'line' in details && 'processId' in details ? [Number(details.processId)] : [],
        );
      await expect.poll(() => standing().length, soon).toBeGreaterThan(before);
      process.kill(standing()[before] ?? 0, 'SIGKILL');
    };

    test('costs nothing: a fresh one does its job', async () => {
      const { renderer, say, log } = await start({ workers: { light: 2, heavy: 0 } });
      const old = new Set(renderer.processIds);
      // Neither is fresh any more.
      await Promise.all([say('a'), say('b')]);
      const response = say('stand-still fresh');
      await killWorker(log, 0);
      expect(await response).toMatch(/ fresh$/);
      expect(old).not.toContain(processIdIn(await response));
      expect(renderer.counters).toEqual({ restarts: 1, kills: 0, recycles: 0 });
      expect(log.count('a job whose render worker has ended begins anew in a fresh one')).toBe(1);
    });

    test('is the fault of its job where the fresh one ends, too, and no other does', async () => {
      const { say, log } = await start();
      const response = say('stand-still').catch((error: unknown) => error);
      await killWorker(log, 0);
      await killWorker(log, 1);
      expect(await response).toMatchObject({
        code: 'UNPROCESSABLE_MEDIA',
        cause: expect.any(WorkerLost),
      });
    });

    test('is no fault of its job where others end with the fresh one', async () => {
      const { renderer, say, log } = await start({ workers: { light: 2, heavy: 0 } });
      const response = say('stand-still').catch((error: unknown) => error);
      await killWorker(log, 0);
      await expect.poll(() => renderer.readyProcessIdsOf('light').length, soon).toBe(2);
      const other = say('stand-still').catch((error: unknown) => error);
      await expect
        .poll(() => log.count('a render worker has written to its standard error'), soon)
        .toBe(3);
      for (const processId of renderer.processIds) process.kill(processId, 'SIGKILL');
      expect(await response).toMatchObject({ code: 'OVERLOADED', bottleneck: 'workers' });
      renderer.stop();
      await other;
    });
  });

  test('a worker killed between jobs costs nothing', async () => {
    const { renderer, say } = await start();
    const [killed = 0] = renderer.processIds;
    process.kill(killed, 'SIGKILL');
    await expect.poll(() => renderer.processIds, soon).not.toContain(killed);
    expect(await say('later')).toMatch(/ later$/);
  });

  test('a worker that was killed while it was idle takes no job with it', async () => {
    const { renderer, say } = await start({ workers: { light: 2, heavy: 0 } });
    for (let round = 0; round < 10; round += 1) {
      await expect.poll(() => renderer.readyProcessIdsOf('light').length, soon).toBe(2);
      for (const processId of renderer.processIds) process.kill(processId, 'SIGKILL');
      // At once: their end is not noticed yet.
      expect(await say('next')).toMatch(/ next$/);
    }
  });

  test('a job that no worker lives to begin may be tried again later, after three of them', async () => {
    const { renderer, say } = await start();
    await expect(say('die before it begins')).rejects.toMatchObject({
      code: 'OVERLOADED',
      bottleneck: 'workers',
      retryAfterSeconds: 1,
      cause: { message: 'No render worker lived to begin the job.' },
    });
    await expect.poll(() => renderer.counters.restarts, soon).toBe(3);
  });

  test('jobs over their deadline, one after another, all fail with it', async () => {
    const { say } = await start({ timeoutMs: 100 });
    for (let round = 0; round < 5; round += 1) {
      await expect(say('hang')).rejects.toMatchObject({ code: 'TRANSFORM_TIMEOUT' });
    }
  });

  test('distinguishes a bad original from a bug of ours', async () => {
    const { renderer, say } = await start();
    await expect(say('corrupt')).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    const bug: unknown = await say('bug').catch((error: unknown) => error);
    expect(bug).toBeInstanceOf(Error);
    expect(bug).not.toHaveProperty('code');
    // Neither has cost a worker.
    expect(renderer.counters).toEqual({ restarts: 0, kills: 0, recycles: 0 });
  });

  test.skipIf(process.platform !== 'linux')(
    'goes on with other workers where the process that has started them is killed',
    async () => {
      const { renderer, log, say } = await start();
      const [worker = 0] = renderer.processIds;
      process.kill(starterOf(worker), 'SIGKILL');
      await expect.poll(() => renderer.counters.restarts, soon).toBe(1);
      expect(processIdIn(await say('anything'))).not.toBe(worker);
      await expect.poll(() => isAlive(worker), soon).toBe(false);
      expect(JSON.stringify(log.entries)).toContain('the end of the process that starts workers');
    },
  );

  test('that cannot start says so', async () => {
    const workerFile = new URL('../support/no-such-worker.mjs', import.meta.url);
    await expect(start({ workerFile })).rejects.toThrow('at its start');
  });

  test('that is stopped while it starts has no process, at whatever step that is', async () => {
    const pool = new WorkerPool(poolOptions);
    const starting = pool.start();
    pool.stop(); // before it has found out how to start one
    await expect(starting).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect(pool.processIds).toEqual([]);
  });

  test('leaves no process behind when it stops, and no job waiting', async () => {
    const { renderer, say } = await start({ workers: { light: 2, heavy: 0 }, timeoutMs: 60_000 });
    const { processIds } = renderer;
    // Two at work, one that waits.
    const jobs = ['hang', 'hang', 'wait'].map((command) => say(command));
    await expect.poll(() => processIds.length, soon).toBe(2);
    renderer.stop();
    for (const job of jobs) {
      const cause = { message: 'The render workers are stopped.' };
      await expect(job).rejects.toMatchObject({ code: 'OVERLOADED', cause });
    }
    await expect.poll(() => processIds.filter(isAlive), soon).toEqual([]);
    await expect(say('too late')).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect(renderer.counters.restarts).toBe(0);
  });
});

describe('a stop by its caller', () => {
  const reason = new Error('the result is not wanted any more');

  test('ends a running job with its worker, and no job waits for it', async () => {
    const { renderer, say } = await start({ timeoutMs: 60_000 });
    const [stopped = 0] = renderer.processIds;
    const caller = new AbortController();
    const job = say('hang', { signal: caller.signal });
    const next = say('next');
    await sent();
    caller.abort(reason);
    await expect(job).rejects.toBe(reason);
    expect(processIdIn(await next)).not.toBe(stopped);
    await expect.poll(() => isAlive(stopped), soon).toBe(false);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
  });

  test('before the job is on its way costs no worker', async () => {
    const { renderer, say } = await start({ timeoutMs: 60_000 });
    const caller = new AbortController();
    const job = say('hang', { signal: caller.signal });
    caller.abort(reason);
    await expect(job).rejects.toBe(reason);
    expect(await say('next')).toMatch(/ next$/);
    expect(renderer.counters.kills).toBe(0);
  });

  test('takes a job out of the wait, and costs no worker', async () => {
    const { renderer, say } = await start({ timeoutMs: 60_000 });
    const [first] = renderer.processIds;
    const runner = new AbortController();
    const running = say('hang', { signal: runner.signal });
    const caller = new AbortController();
    const waiting = say('crash', { signal: caller.signal });
    await sent();
    caller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(say('crash', { signal: caller.signal })).rejects.toBe(reason);
    expect(renderer.processIds).toEqual([first]);
    runner.abort(reason);
    await expect(running).rejects.toBe(reason);
    expect(await say('next')).toMatch(/ next$/);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
  });

  test('after the response changes nothing', async () => {
    const { renderer, say } = await start();
    const caller = new AbortController();
    const first = await say('first', { signal: caller.signal });
    caller.abort(reason);
    expect(processIdIn(await say('second'))).toBe(processIdIn(first));
    expect(renderer.counters.kills).toBe(0);
  });
});

describe('the lanes', () => {
  test('have workers of their own: a hung heavy one delays no light job', async () => {
    const { renderer, say } = await start({
      workers: { light: 1, heavy: 1 },
      timeoutMs: 60_000,
    });
    const heavy = Promise.allSettled([
      say('hang', { lane: 'heavy' }),
      say('waits for it', { lane: 'heavy' }),
    ]);
    for (let round = 0; round < 20; round += 1) {
      expect(renderer.processIdsOf('light')).toEqual([processIdIn(await say('light'))]);
    }
    renderer.stop();
    expect((await heavy).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  test('keep a replacement in its lane', async () => {
    const { renderer, say } = await start({ workers: { light: 1, heavy: 1 } });
    const [light] = renderer.processIdsOf('light');
    await expect(say('crash', { lane: 'heavy' })).rejects.toMatchObject({
      code: 'UNPROCESSABLE_MEDIA',
    });
    const heavy = processIdIn(await say('next', { lane: 'heavy' }));
    expect(renderer.processIdsOf('heavy')).toEqual([heavy]);
    expect(renderer.processIdsOf('light')).toEqual([light]);
  });

  test('serve a waiting job by whichever worker is ready first', async () => {
    const { renderer, say } = await start({ workers: { light: 2, heavy: 0 }, timeoutMs: 60_000 });
    const caller = new AbortController();
    const stuck = say('hang').catch(() => 'stuck');
    const stopped = say('hang', { signal: caller.signal }).catch(() => 'stopped');
    const waiting = say('served');
    await sent();
    caller.abort();
    expect(await waiting).toMatch(/ served$/);
    expect(await stopped).toBe('stopped');
    renderer.stop();
    expect(await stuck).toBe('stuck');
  });
});

describe('a worker in the hands of an attacker', () => {
  test.each([
    'unknown kind',
    'no object',
    'null',
    'no json',
    'unknown code',
    'inherited code',
    'no detail',
    'body of a failure',
    'no body',
    'body in the header',
    'no size',
    'ready again',
    'begun again',
    'huge header',
    'huge body',
    'body over the bound',
  ])('is killed for its message, and its job with it: %s', async (lie) => {
    const { renderer, say, log } = await start();
    const [liar = 0] = renderer.processIds;
    await expect(say(`lie ${lie}`)).rejects.toMatchObject({
      code: 'UNPROCESSABLE_MEDIA',
      cause: expect.any(WorkerLost),
    });
    expect(await say('next')).toMatch(/ next$/);
    await expect.poll(() => isAlive(liar), soon).toBe(false);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
    expect(log.entries).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        details: expect.objectContaining({ reason: expect.stringMatching(/^protocol: /) }),
      }),
    );
  });

  test('is killed for a second response, which the next job does not get', async () => {
    const { renderer, say } = await start();
    const [liar] = renderer.processIds;
    expect(await say('answer unasked')).toBe('first');
    const next = await say('next');
    expect(next).toMatch(/ next$/);
    expect(processIdIn(next)).not.toBe(liar);
    expect(renderer.counters).toEqual({ restarts: 1, kills: 1, recycles: 0 });
  });

  test('is killed for a response to a job it has not begun, which another may do', async () => {
    const { renderer, say } = await start();
    await expect(say('not begun')).rejects.toMatchObject({ code: 'OVERLOADED' });
    await expect.poll(() => renderer.counters.kills, soon).toBe(3);
    expect(await say('next')).toMatch(/ next$/);
  });

  test('cannot fill the log', async () => {
    const { say, log } = await start();
    expect(await say('write-errors 5000')).toBe('written');
    expect(await say('next')).toMatch(/ next$/);
    const lines = (): string[] =>
      log.entries.flatMap(({ details }) => ('line' in details ? [String(details.line)] : []));
    // They come through another process than the response.
    await expect.poll(() => lines().length, soon).toBeGreaterThanOrEqual(20);
    await say('anything more');
    expect(lines()[0]).toBe('complaint 1');
    expect(lines()).toHaveLength(20);
  });
});
