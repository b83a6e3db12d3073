import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { unlessAborted, withDeadline } from '../../src/pipeline/abort.ts';
import { defer, settle } from '../support/deferred.ts';
import { collectGarbage } from '../support/processes/garbage.ts';
import { expectNoUnhandledRejections } from '../support/unhandled-rejections.ts';

expectNoUnhandledRejections();

const never = new Promise<never>(() => undefined);
const listenersOf = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;

describe('unlessAborted', () => {
  test('comes to what the promise comes to', async () => {
    const { signal } = new AbortController();
    await expect(unlessAborted(Promise.resolve('value'), signal)).resolves.toBe('value');
    const failure = new Error('failure');
    await expect(unlessAborted(Promise.reject(failure), signal)).rejects.toBe(failure);
    expect(listenersOf(signal)).toBe(0);
  });

  test('waits no longer than the signal, and listens to it no longer either', async () => {
    const client = new AbortController();
    const waiting = unlessAborted(never, client.signal);
    expect(listenersOf(client.signal)).toBe(1);
    const reason = { any: 'reason' };
    client.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(listenersOf(client.signal)).toBe(0);
  });

  test('does not wait where the signal has aborted, nor listen to it', async () => {
    const signal = AbortSignal.abort('reason');
    await expect(unlessAborted(never, signal)).rejects.toBe('reason');
    await expect(unlessAborted(Promise.resolve('late'), signal)).rejects.toBe('reason');
    expect(listenersOf(signal)).toBe(0);
  });

  test.each(['before', 'after'])('drops a failure that comes %s the abort', async (when) => {
    const client = new AbortController();
    const { promise, reject } = defer<never>();
    const waiting = unlessAborted(promise, client.signal);
    if (when === 'before') reject(new Error('dropped'));
    client.abort('reason');
    await expect(waiting).rejects.toBe('reason');
    reject(new Error('dropped')); // an unhandled rejection would fail this test
  });

  test('serves all who wait for one promise, whenever they have come', async () => {
    const { signal } = new AbortController();
    const { promise, resolve } = defer<string>();
    const early = [unlessAborted(promise, signal), unlessAborted(promise, signal)];
    resolve('value');
    const inTheMoment = unlessAborted(promise, signal);
    const turns: Promise<string>[] = [];
    for (let turn = 0; turn < 6; turn += 1) {
      await undefined;
      turns.push(unlessAborted(promise, signal));
    }
    const all = [...early, inTheMoment, ...turns];
    expect(await Promise.all(all)).toEqual(all.map(() => 'value'));
    expect(listenersOf(signal)).toBe(0);
  });

  test('forgets a waiter that has left, though the promise still takes its time', async () => {
    const { promise, resolve } = defer<string>();
    const stayed = unlessAborted(promise, new AbortController().signal);
    const leave = (): WeakRef<object> => {
      const client = new AbortController();
      const luggage = { any: 'thing' };
      const wait = async () => ({ value: await unlessAborted(promise, client.signal), luggage });
      wait().catch(() => undefined);
      client.abort(luggage); // as the stack of a real reason holds the response it came from
      return new WeakRef(luggage);
    };
    const left = Array.from({ length: 100 }, leave);
    await settle();
    collectGarbage();
    // The engine itself was seen to hold one of them; what is not forgotten would hold all.
    expect(left.filter((luggage) => luggage.deref() !== undefined).length).toBeLessThan(10);
    resolve('value');
    expect(await stayed).toBe('value');
  });

  test('costs the promise one listener, however many wait and leave', async () => {
    const { promise } = defer<string>();
    const then = vi.spyOn(promise, 'then');
    const waits = Array.from({ length: 100 }, () => {
      const client = new AbortController();
      const wait = unlessAborted(promise, client.signal);
      client.abort('gone');
      return wait;
    });
    expect(await Promise.allSettled(waits)).toEqual(
      waits.map(() => ({ status: 'rejected', reason: 'gone' })),
    );
    expect(then).toHaveBeenCalledTimes(1);
  });

  test('leaves nothing on a signal that outlives thousands of promises', async () => {
    const { signal } = new AbortController();
    for (let round = 0; round < 5_000; round += 1) {
      await unlessAborted(
        round % 2 === 0 ? Promise.resolve() : Promise.reject(round),
        signal,
      ).catch(() => undefined);
    }
    expect(listenersOf(signal)).toBe(0);
  });
});

describe('withDeadline', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    vi.spyOn(globalThis, 'setTimeout');
    vi.spyOn(globalThis, 'clearTimeout');
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  /** Other timers in this process, of connections that an earlier test has left open, are not counted. */
  const expectDeadlineCleared = (timeoutMs: number): void => {
    const { calls, results } = vi.mocked(setTimeout).mock;
    const last = calls.findLastIndex(([, delayMs]) => delayMs === timeoutMs);
    expect(vi.mocked(clearTimeout)).toHaveBeenCalledWith(results[last]?.value);
  };

  const late = new Error('late');
  const onTimeout = () => late;

  test('begins nothing where the signal has aborted', async () => {
    const work = vi.fn();
    const signal = AbortSignal.abort('reason');
    await expect(withDeadline(1, signal, onTimeout, work)).rejects.toBe('reason');
    expect(work).not.toHaveBeenCalled();
  });

  test('cleans up after a work that throws at once', async () => {
    const { signal } = new AbortController();
    const failure = new Error('failure');
    const attempt = withDeadline(1_000, signal, onTimeout, () => {
      throw failure;
    });
    await expect(attempt).rejects.toBe(failure);
    expectDeadlineCleared(1_000);
    expect(listenersOf(signal)).toBe(0);
  });

  /** What can end a wait. */
  interface Event {
    readonly atMs: number;
    readonly kind: 'value' | 'failure' | 'leave';
  }
  const timeoutMs = 50;
  // At odd milliseconds, so that none falls on the deadline: which comes first there is a matter of
  // the order of two timers.
  const event: fc.Arbitrary<Event> = fc.record({
    atMs: fc.nat(49).map((half) => 2 * half + 1),
    kind: fc.constantFrom('value' as const, 'failure' as const, 'leave' as const),
  });

  test('the first of value, failure, deadline and abort decides; the rest is dropped', async () => {
    const outcomes = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 4 }), async (events) => {
        const client = new AbortController();
        const work = defer<string>();
        let within: AbortSignal | undefined;
        const deadline = withDeadline(timeoutMs, client.signal, onTimeout, (signal) => {
          within = signal;
          return work.promise;
        }).catch((error: unknown) => error);
        const act = {
          value: () => work.resolve('value'),
          failure: () => work.reject(new Error('failure')),
          leave: () => client.abort(new Error('leave')),
        } satisfies Record<Event['kind'], () => void>;
        for (const { atMs, kind } of events) setTimeout(act[kind], atMs);
        await vi.advanceTimersByTimeAsync(100);

        const [first] = [...events, { atMs: timeoutMs, kind: 'late' as const }].sort(
          (one, other) => one.atMs - other.atMs,
        );
        const outcome = await deadline;
        expect(outcome instanceof Error ? outcome.message : outcome).toBe(first?.kind);
        expect(within?.reason?.message).toBe(
          first?.kind === 'late' || first?.kind === 'leave' ? first.kind : undefined,
        );
        expect(listenersOf(client.signal)).toBe(0);
        expectDeadlineCleared(timeoutMs);
        outcomes.add(String(first?.kind));
      }),
      { numRuns: 300 },
    );
    expect([...outcomes].sort()).toEqual(['failure', 'late', 'leave', 'value']);
  });
});
