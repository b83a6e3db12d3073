import { describe, expect, test } from 'vitest';
import type { Lane } from '../../src/pipeline/ports.ts';
import { isAlive, type TestPool, usePools } from '../support/processes/worker-pool.ts';

const start = usePools();

const pidOf = async (pool: TestPool, lane: Lane = 'light'): Promise<number> =>
  Number((await pool.say('which', { lane })).split(' ')[0]);

describe('a worn worker', () => {
  test('is replaced after so many jobs, of which none is lost', async () => {
    const pool = await start({ maxJobs: 5 });
    const { renderer, log } = pool;
    const seen = new Set<number>();
    for (let round = 0; renderer.counters.recycles < 2; round += 1) {
      expect(round).toBeLessThan(5_000);
      seen.add(await pidOf(pool));
    }
    expect(seen.size).toBeGreaterThanOrEqual(3);
    // Not a failure: nothing but `info`, and no restart counted.
    expect(renderer.counters).toEqual({ restarts: 0, kills: 0, recycles: 2 });
    expect(new Set(log.entries.map(({ level }) => level))).toEqual(new Set(['info']));
  });

  test('is replaced when its memory has grown beyond the bound, as it says itself', async () => {
    const pool = await start({ maxRssBytes: 1_000 });
    const { renderer } = pool;
    const first = Number(await pool.say('grow 1000'));
    expect(await pidOf(pool)).toBe(first);
    expect(renderer.processIds).toEqual([first]);

    expect(Number(await pool.say('grow 1001'))).toBe(first);
    // The next job waits for the new one.
    expect(await pidOf(pool)).not.toBe(first);
    expect(isAlive(first)).toBe(false);
    expect(renderer.counters).toEqual({ restarts: 0, kills: 0, recycles: 1 });
  });

  test('leaves its job to the next process where its replacement is killed from outside', async () => {
    const pool = await start({ maxRssBytes: 1_000 });
    const { renderer } = pool;
    const first = Number(await pool.say('grow 1001'));
    expect(first).toBeGreaterThan(0);
    const response = pool.say('rest 1500');
    // Ready: before, bubblewrap may be killed alone, and what it has started does the job.
    const ready = () => renderer.readyProcessIdsOf('light');
    await expect.poll(() => [renderer.counters.recycles, ready().length]).toEqual([1, 1]);
    const [second = 0] = ready();
    process.kill(second, 'SIGKILL');
    expect([first, second]).not.toContain(Number((await response).split(' ')[0]));
    expect(renderer.counters).toEqual({ restarts: 1, kills: 0, recycles: 1 });
  });
});
