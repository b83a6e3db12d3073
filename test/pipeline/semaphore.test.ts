import { describe, expect, test } from 'vitest';
import { Semaphore } from '../../src/pipeline/semaphore.ts';

const never = new AbortController().signal;
const create = (slots: number, maxWaiting = 10) =>
  new Semaphore({ slots, maxWaiting, maxWaitMs: 10_000 });

describe('a semaphore', () => {
  test('lets so many in at once, and the next one when one leaves', async () => {
    const semaphore = create(2);
    const [leaveFirst] = await Promise.all([semaphore.enter(never), semaphore.enter(never)]);
    let isIn = false;
    const third = semaphore.enter(never).then(() => {
      isIn = true;
    });
    await Promise.resolve();
    expect(isIn).toBe(false);
    leaveFirst();
    await third;
    expect(isIn).toBe(true);
  });

  test('a slot that is given back twice is given back once', async () => {
    const semaphore = create(1, 0);
    const leave = await semaphore.enter(never);
    leave();
    leave();
    await semaphore.enter(never);
    await expect(semaphore.enter(never)).rejects.toMatchObject({
      code: 'OVERLOADED',
      retryAfterSeconds: 1,
    });
  });

  test('a client that gives up waiting takes no slot along', async () => {
    const semaphore = create(1);
    const leave = await semaphore.enter(never);
    const client = new AbortController();
    const gone = semaphore.enter(client.signal);
    client.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    leave();
    await expect(semaphore.enter(never)).resolves.toBeTypeOf('function');
    await expect(semaphore.enter(client.signal)).rejects.toThrow('gone');
  });
});
