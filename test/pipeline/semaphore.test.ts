import { describe, expect, test } from 'vitest';
import { Semaphore } from '../../src/pipeline/semaphore.ts';

const never = new AbortController().signal;
const create = (slots: number, maxWaiting = 10) =>
  new Semaphore({ slots, maxWaiting, maxWaitMs: 10_000 });

describe('a gate', () => {
  test('lets so many in at once, and the next one when one leaves', async () => {
    const gate = create(2);
    const [leaveFirst] = await Promise.all([gate.enter(never), gate.enter(never)]);
    let isIn = false;
    const third = gate.enter(never).then(() => {
      isIn = true;
    });
    await Promise.resolve();
    expect(isIn).toBe(false);
    leaveFirst();
    await third;
    expect(isIn).toBe(true);
  });

  test('who leaves twice leaves once', async () => {
    const gate = create(1, 0);
    const leave = await gate.enter(never);
    leave();
    leave();
    await gate.enter(never);
    await expect(gate.enter(never)).rejects.toMatchObject({
      code: 'OVERLOADED',
      retryAfterSeconds: 1,
    });
  });

  test('who gives up waiting takes no slot along', async () => {
    const gate = create(1);
    const leave = await gate.enter(never);
    const client = new AbortController();
    const gone = gate.enter(client.signal);
    client.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    leave();
    await expect(gate.enter(never)).resolves.toBeTypeOf('function');
    await expect(gate.enter(client.signal)).rejects.toThrow('gone');
  });
});
