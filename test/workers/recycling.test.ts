import { describe, expect, test } from 'vitest';
import type { Lane } from '../../src/pipeline/ports.ts';
import { isAlive, type TestPool, usePools } from '../support/processes/worker-pool.ts';

const start = usePools();

/** For a process to start on a busy machine. */
const soon = { timeout: 20_000 };

/** Logged of a worker that stands still. */
const STANDS = 'a render worker has written to its standard error';

const pidOf = async (pool: TestPool, lane: Lane = 'light'): Promise<number> =>
  Number((await pool.say('which', { lane })).split(' ')[0]);

describe('a worn worker', () => {
  test('is replaced after so many jobs: none is lost, and there is no gap', async () => {
    const workers = { light: 2, heavy: 0 };
    const pool = await start({ workers, maxJobs: 5 });
    const { renderer, log } = pool;
    const seen = new Set<number>();
    let fewest = Infinity;
    for (let round = 0; renderer.counters.recycles < 4; round += 1) {
      expect(round).toBeLessThan(5_000);
      // Three at once: one has to wait for one of the two.
      const pids = await Promise.all([pidOf(pool), pidOf(pool), pidOf(pool)]);
      for (const pid of pids) seen.add(pid);
      fewest = Math.min(fewest, renderer.readyProcessIdsOf('light').filter(isAlive).length);
      expect(renderer.processIds.length).toBeLessThanOrEqual(3); // one at a time
    }
    expect(fewest).toBe(2);
    expect(seen.size).toBeGreaterThanOrEqual(5);
    // Not a failure: nothing but `info`, and no restart counted.
    expect(renderer.counters).toEqual({ restarts: 0, kills: 0, recycles: 4 });
    expect(new Set(log.entries.map(({ level }) => level))).toEqual(new Set(['info']));
  });

  test('is replaced when its memory has grown beyond the bound, as it says itself', async () => {
    const pool = await start({ maxRssBytes: 1_000 });
    const { renderer } = pool;
    const first = Number(await pool.say('grow 1000'));
    expect(await pidOf(pool)).toBe(first);
    expect(renderer.processIds).toEqual([first]);

    expect(Number(await pool.say('grow 1001'))).toBe(first);
    expect(renderer.readyProcessIdsOf('light')).toEqual([first]);
    // It works until the other one is ready; then it ends, idle as it is.
    expect(await pidOf(pool)).toBe(first);
    await expect.poll(() => renderer.counters.recycles, soon).toBe(1);
    await expect.poll(() => isAlive(first), soon).toBe(false);
    expect(await pidOf(pool)).not.toBe(first);
  });

  test.each([
    ['fresh', 0],
    ['no longer fresh', 1],
  ])(
    'that is killed at work beside its idle replacement leaves its job to that: %s',
    async (_name, jobs) => {
      const { renderer, say, log } = await start({ maxRssBytes: 1_000 });
      await say('first');
      const worn = Number(await say('grow 1001'));
      const response = say('stand-still 2');
      await expect.poll(() => log.count(STANDS), soon).toBe(1);
      await expect.poll(() => renderer.readyProcessIdsOf('light').length, soon).toBe(2);
      for (let job = 0; job < jobs; job += 1) await say('anything');
      const [replacement] = renderer.processIds.filter((pid) => pid !== worn);
      process.kill(worn, 'SIGKILL');
      expect(await response).toBe(`${replacement} went on`);
    },
  );

  test('is one per pool at a time; others wait for their turn', async () => {
    const pool = await start({ workers: { light: 1, heavy: 1 }, maxRssBytes: 1_000 });
    const { renderer, say } = pool;
    const worn = new Set(renderer.processIds);
    await Promise.all([say('grow 1001'), say('grow 1001', { lane: 'heavy' })]);
    const lanes: Lane[] = ['light', 'heavy'];
    for (let round = 0; renderer.processIds.some((pid) => worn.has(pid)); round += 1) {
      expect(round).toBeLessThan(20_000);
      // Worn ones go on as if they were not. The replacement may be there by the second message.
      const lane = lanes[round % 2] ?? 'light';
      if (worn.has(await pidOf(pool, lane))) worn.add(Number(await say('grow 1001', { lane })));
      expect(renderer.processIds.length).toBeLessThanOrEqual(3);
      for (const each of lanes) expect(renderer.readyProcessIdsOf(each).length).toBeGreaterThan(0);
    }
    await expect.poll(() => renderer.counters.recycles, soon).toBe(worn.size);
  });
});
