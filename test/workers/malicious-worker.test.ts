import { describe, expect, test } from 'vitest';
import { WorkerLost } from '../../src/pipeline/ports.ts';
import { isAlive, usePools } from '../support/processes/worker-pool.ts';

const start = usePools();

/** For a process to start or end on a busy machine. */
const soon = { timeout: 20_000 };

const processIdIn = (reply: string): number => Number(reply.split(' ')[0]);

describe('a worker in the hands of an attacker', () => {
  test.each([
    ...['unknown kind', 'no object', 'null', 'no json', 'unknown code', 'inherited code'],
    ...['no detail', 'body of a failure', 'no body', 'body in the header', 'no size'],
    ...['ready again', 'begun again', 'huge header', 'huge body', 'body over the bound'],
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

  test('may send a response in pieces of any size, and one after another', async () => {
    const { say } = await start();
    for (const pieceBytes of [1, 7, 8, 9, 13]) {
      expect(await say(`in-pieces ${pieceBytes}`)).toBe('in pieces');
    }
  });
});
