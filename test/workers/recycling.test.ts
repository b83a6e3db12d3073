import { describe, expect, test } from 'vitest';
import type { Lane } from '../../src/pipeline/ports.ts';
import { isAlive, type TestPool, usePools } from '../support/processes/worker-pool.ts';

const start = usePools();

/** For a process to start on a busy machine. */
const soon = { timeout: 20_000 };

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

  test('that is at work when its replacement is ready finishes its job first', async () => {
    const pool = await start({ maxRssBytes: 1_000, timeoutMs: 60_000 });
    const { renderer, say } = pool;
    const first = Number(await say('grow 1001'));
    const caller = new AbortController();
    const last = say('hang', { signal: caller.signal }); // on the worn one, the only one
    await expect.poll(() => renderer.readyProcessIdsOf('light').length, soon).toBe(2);
    expect(await pidOf(pool)).not.toBe(first);
    expect(isAlive(first)).toBe(true);
    const reason = new Error('the result is not wanted any more');
    caller.abort(reason);
    await expect(last).rejects.toBe(reason);
    // It did not live to be dismissed; its replacement was there already, so there is no other.
    await expect.poll(() => renderer.processIds.length, soon).toBe(1);
    expect(renderer.counters).toMatchObject({ kills: 1, recycles: 0 });
    expect(await pidOf(pool)).not.toBe(first);
  });

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

  test('that dies before its replacement is ready is replaced once all the same', async () => {
    const pool = await start({ maxRssBytes: 1_000 });
    const { renderer, say } = pool;
    const first = Number(await say('grow 1001'));
    process.kill(first, 'SIGKILL');
    await expect.poll(() => renderer.processIds, soon).not.toContain(first);
    expect(await pidOf(pool)).not.toBe(first);
    expect(renderer.processIds).toHaveLength(1);
    // The turn is given back: the next worn one is replaced again.
    const second = Number(await say('grow 1001'));
    await expect.poll(() => renderer.counters.recycles, soon).toBe(1);
    await expect.poll(() => isAlive(second), soon).toBe(false);
  });
});
