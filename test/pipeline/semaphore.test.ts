import { expect, test } from 'vitest';
import { Semaphore } from '../../src/pipeline/semaphore.ts';

const never = new AbortController().signal;
const create = (slots: number, { maxWaiting = 10, maxWaitMs = 600_000 } = {}) =>
  new Semaphore({ slots, maxWaiting, maxWaitMs });
const overloaded = { code: 'OVERLOADED', bottleneck: 'origin', retryAfterSeconds: 1 };

test('a semaphore lets so many in at once, and the next one when one leaves', async () => {
  const semaphore = create(2);
  const [leaveFirst] = await Promise.all([semaphore.enter(never), semaphore.enter(never)]);
  const third = semaphore.enter(never);
  await Promise.resolve();
  expect([semaphore.inside, semaphore.waiting]).toEqual([2, 1]);
  leaveFirst();
  const leaveThird = await third;
  expect([semaphore.inside, semaphore.waiting]).toEqual([2, 0]);
  leaveThird();
  leaveThird(); // which changes nothing
  expect(semaphore.inside).toBe(1);
});

test('a semaphore refuses at once where none may wait, and later one that has waited too long', async () => {
  const full = create(1, { maxWaiting: 0 });
  await full.enter(never);
  await expect(full.enter(never)).rejects.toMatchObject(overloaded);
  const slow = create(1, { maxWaitMs: 5 });
  await slow.enter(never);
  await expect(slow.enter(never)).rejects.toMatchObject(overloaded);
  expect([slow.inside, slow.waiting]).toEqual([1, 0]);
});

test('a client that gives up waiting takes no slot of a semaphore along', async () => {
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
