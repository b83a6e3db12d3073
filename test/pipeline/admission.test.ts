import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Admission } from '../../src/pipeline/admission.ts';

const never = new AbortController().signal;

describe('admission', () => {
  let nowMs = 0;
  const clock = { nowMs: () => nowMs };

  beforeEach(() => {
    nowMs = 0;
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const create = (maxWaiting = 2) =>
    new Admission({ slots: 1, maxWaiting, maxWaitMs: 5_000 }, clock);

  test('admits in the order of arrival', async () => {
    const admission = create();
    const order: string[] = [];
    const enter = async (name: string) => {
      const release = await admission.enter(never);
      order.push(name);
      return release;
    };
    const first = await enter('first');
    const second = enter('second');
    const third = enter('third');
    expect(order).toEqual(['first']);
    first();
    (await second)();
    (await third)();
    expect(order).toEqual(['first', 'second', 'third']);
    await expect(admission.enter(never)).resolves.toBeTypeOf('function');
  });

  test('refuses at once when the queue is full, with an honest Retry-After', async () => {
    const admission = create(1);
    for (let round = 0; round < 40; round += 1) {
      const release = await admission.enter(never);
      nowMs += 4_000;
      release();
    }
    await admission.enter(never);
    const waiting = admission.enter(never);
    waiting.catch(() => undefined);
    // One waits ahead and one works, four seconds each.
    await expect(admission.enter(never)).rejects.toMatchObject({
      code: 'OVERLOADED',
      retryAfterSeconds: 8,
    });
  });

  test('refuses who has waited too long, and gives the slot to the next', async () => {
    const admission = create();
    const release = await admission.enter(never);
    const late = admission.enter(never);
    const refused = expect(late).rejects.toMatchObject({
      code: 'OVERLOADED',
      retryAfterSeconds: 1,
    });
    await vi.advanceTimersByTimeAsync(4_999);
    const next = admission.enter(never);
    await vi.advanceTimersByTimeAsync(1);
    await refused;
    release();
    await expect(next).resolves.toBeTypeOf('function');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('forgets who leaves the queue', async () => {
    const admission = create();
    const release = await admission.enter(never);
    const client = new AbortController();
    const gone = admission.enter(client.signal);
    const next = admission.enter(never);
    client.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    release();
    await expect(next).resolves.toBeTypeOf('function');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('lets nobody in who has left already', async () => {
    const admission = create();
    await expect(admission.enter(AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    await expect(admission.enter(never)).resolves.toBeTypeOf('function');
  });
});
