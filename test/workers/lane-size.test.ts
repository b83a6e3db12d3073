import { describe, expect, test } from 'vitest';
import { usePools } from '../support/processes/worker-pool.ts';

const start = usePools();

/** For a process to start or end on a busy machine. */
const soon = { timeout: 20_000 };

/** Worker processes, as they are counted where nothing went wrong. */
const unharmed = { restarts: 0, kills: 0, recycles: 0 };

describe('heavy workers', () => {
  const workers = { light: 1, heavy: 2 };

  test('beyond the first start when all are at work, and no more of them than there may be', async () => {
    const { renderer, say } = await start({ workers, timeoutMs: 60_000 });
    const first = renderer.processIdsOf('heavy');
    expect(first).toHaveLength(1);
    expect(renderer.wantedOf('heavy')).toBe(1);
    for (let round = 0; round < 3; round += 1) await say('one', { lane: 'heavy' });
    expect(renderer.processIdsOf('heavy')).toEqual(first);
    const jobs = ['hang', 'hang', 'wait'].map((text) => say(text, { lane: 'heavy' }));
    for (const job of jobs) job.catch(() => undefined);
    await expect.poll(() => renderer.readyProcessIdsOf('heavy').length, soon).toBe(2);
    expect(renderer.processIdsOf('heavy')).toHaveLength(2);
    expect(renderer.wantedOf('heavy')).toBe(2);
    expect(renderer.counters).toEqual(unharmed);
    renderer.stop();
    await Promise.allSettled(jobs);
  });

  test('beyond the first end when they have been idle, and start again', async () => {
    const { renderer, say } = await start({ workers, maxIdleMs: 100 });
    for (let round = 0; round < 3; round += 1) {
      const texts = await Promise.all(['a', 'b'].map((text) => say(text, { lane: 'heavy' })));
      expect(texts.map((text) => text.split(' ')[1])).toEqual(['a', 'b']);
      // Of one that is about to start there is no process yet.
      const sizes = () => [renderer.wantedOf('heavy'), renderer.processIdsOf('heavy').length];
      await expect.poll(sizes, soon).toEqual([1, 1]);
    }
    expect(renderer.counters).toEqual(unharmed);
    expect(renderer.processIdsOf('light')).toHaveLength(1);
  });

  test('that die are started again, as many as were there', async () => {
    const { renderer, say } = await start({ workers, timeoutMs: 60_000 });
    const jobs = ['hang', 'hang'].map((text) => say(text, { lane: 'heavy' }));
    for (const job of jobs) job.catch(() => undefined);
    await expect.poll(() => renderer.readyProcessIdsOf('heavy').length, soon).toBe(2);
    const killed = renderer.processIdsOf('heavy');
    for (const processId of killed) process.kill(processId, 'SIGKILL');
    await expect.poll(() => renderer.counters.restarts, soon).toBe(2);
    await expect.poll(() => renderer.readyProcessIdsOf('heavy').length, soon).toBe(2);
    expect(renderer.processIdsOf('heavy').filter((id) => killed.includes(id))).toEqual([]);
  });
});
