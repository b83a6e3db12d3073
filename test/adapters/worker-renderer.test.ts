import { afterEach, describe, expect, test } from 'vitest';
import { WorkerRenderer } from '../../src/adapters/worker-renderer.ts';
import type { RenderJob } from '../../src/pipeline/plan.ts';

const SCRIPTED = new URL('../support/scripted-worker.mjs', import.meta.url);

const job: RenderJob = {
  animation: undefined,
  originalSize: { widthPx: 1, heightPx: 1 },
  orientation: 1,
  toSrgbExponent: undefined,
  resize: 'none',
  size: { widthPx: 1, heightPx: 1 },
  format: 'png',
  encoder: {},
  maxInputPixels: 1,
};

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

describe('the worker pool', () => {
  let renderer: WorkerRenderer | undefined;
  afterEach(() => renderer?.stop());

  const start = async (workers: number, timeoutMs = 10_000, workerFile = SCRIPTED) => {
    renderer = new WorkerRenderer({
      workerFile,
      workers,
      timeoutMs,
      environment: { PATH: '/usr/bin:/bin' },
      log: silent,
    });
    await renderer.start();
    return renderer;
  };
  const say = async (pool: WorkerRenderer, command: string): Promise<string> =>
    Buffer.from(await pool.render(Buffer.from(command), job)).toString();

  test('forks its workers before the first job and spreads the work over them', async () => {
    const pool = await start(2);
    expect(pool.processIds).toHaveLength(2);
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map((command) => say(pool, command)));
    const pids = new Set(answers.map((answer) => Number(answer.split(' ')[0])));
    expect(pids).toEqual(new Set(pool.processIds));
  });

  test('kills a job at its deadline, whatever it does, and goes on', async () => {
    const pool = await start(1, 300);
    const [hanging] = pool.processIds;
    await expect(say(pool, 'hang')).rejects.toMatchObject({ code: 'TRANSFORM_TIMEOUT' });
    const next = await say(pool, 'next');
    expect(next).toMatch(/ next$/);
    expect(Number(next.split(' ')[0])).not.toBe(hanging);
    expect(() => process.kill(hanging ?? 0, 0)).toThrow('ESRCH');
  });

  test.each(['crash', 'exit'])(
    'a worker that ends (%s) fails its own job alone',
    async (command) => {
      const pool = await start(2);
      const results = await Promise.allSettled([
        say(pool, command),
        ...['a', 'b', 'c', 'd', 'e'].map((text) => say(pool, text)),
      ]);
      expect(results[0]).toMatchObject({
        status: 'rejected',
        reason: { code: 'UNPROCESSABLE_MEDIA' },
      });
      expect(results.slice(1).map(({ status }) => status)).toEqual(Array(5).fill('fulfilled'));
      await expect.poll(() => pool.processIds.length).toBe(2);
    },
  );

  test('a worker killed between jobs costs nothing', async () => {
    const pool = await start(1);
    const [killed] = pool.processIds;
    process.kill(killed ?? 0, 'SIGKILL');
    await expect.poll(() => pool.processIds).not.toContain(killed);
    expect(await say(pool, 'later')).toMatch(/ later$/);
  });

  test('a worker that was killed while it was idle takes no job with it', async () => {
    const pool = await start(2);
    for (let round = 0; round < 10; round += 1) {
      await expect.poll(() => pool.processIds.length).toBe(2);
      for (const pid of pool.processIds) process.kill(pid, 'SIGKILL');
      // At once: nobody has noticed yet.
      expect(await say(pool, 'next')).toMatch(/ next$/);
    }
  });

  test('jobs over their deadline, one after another, are all told so', async () => {
    const pool = await start(1, 100);
    for (let round = 0; round < 5; round += 1) {
      await expect(say(pool, 'hang')).rejects.toMatchObject({ code: 'TRANSFORM_TIMEOUT' });
    }
  });

  test('tells a bad original from a bug of ours', async () => {
    const pool = await start(1);
    await expect(say(pool, 'corrupt')).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    const bug: unknown = await say(pool, 'bug').catch((error: unknown) => error);
    expect(bug).toBeInstanceOf(Error);
    expect(bug).not.toHaveProperty('code');
  });

  test('hands workers no more of the environment than they need', async () => {
    process.env.AWS_SECRET_ACCESS_KEY = 'secret';
    const pool = await start(1);
    const environment: Record<string, string> = JSON.parse(await say(pool, 'environment'));
    delete process.env.AWS_SECRET_ACCESS_KEY;
    // What Node itself adds for the IPC channel is all there is besides.
    const names = Object.keys(environment).filter((name) => !name.startsWith('NODE_CHANNEL'));
    expect(names.sort()).toEqual([
      'MALLOC_ARENA_MAX',
      'PATH',
      'UV_THREADPOOL_SIZE',
      'VIPS_WARNING',
    ]);
  });

  test('that cannot start says so', async () => {
    const missing = new URL('../support/no-such-worker.mjs', import.meta.url);
    await expect(start(1, 1_000, missing)).rejects.toThrow('at its start');
  });

  test('leaves no process behind when it stops', async () => {
    const pool = await start(2, 60_000);
    const pids = pool.processIds;
    const busy = say(pool, 'hang').catch((error: unknown) => error);
    pool.stop();
    await busy;
    await expect
      .poll(() =>
        pids.filter((pid) => {
          try {
            return process.kill(pid, 0);
          } catch {
            return false;
          }
        }),
      )
      .toEqual([]);
  });
});
