import { setMaxListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Lane } from '../../../src/pipeline/ports.ts';
import { Admission, type Slot } from '../../../src/pipeline/render/admission.ts';

/** Of a client that never gives up. */
const never = (): AbortSignal => new AbortController().signal;

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

  const create = (
    slots = { light: 1, heavy: 1 },
    maxWaitingPerSlot = 2,
    hasIdle = (_lane: Lane) => false,
  ) => {
    const waits: string[] = [];
    const admission = new Admission(
      { slots, hasIdle },
      { maxWaitingPerSlot, maxWaitMs: 5_000 },
      clock,
      { noteQueueWait: (lane, waitedMs) => void waits.push(`${lane} ${waitedMs}`) },
    );
    const entered: string[] = [];
    const enter = async (
      name: string,
      lane: Lane,
      costMs = lane === 'light' ? 10 : 500,
      signal = never(),
    ): Promise<Slot> => {
      const slot = await admission.enter(lane, costMs, signal);
      entered.push(name);
      return slot;
    };
    return { admission, enter, entered, waits };
  };

  test('admits in the order of arrival', async () => {
    const { enter, entered } = create({ light: 1, heavy: 0 });
    const first = await enter('first', 'light');
    const second = enter('second', 'light');
    const third = enter('third', 'light');
    expect(entered).toEqual(['first']);
    first.leave(true);
    (await second).leave(true);
    (await third).leave(true);
    expect(entered).toEqual(['first', 'second', 'third']);
    await expect(enter('fourth', 'light')).resolves.toBeDefined();
  });

  test('reports how long each has waited', async () => {
    const { enter, waits } = create({ light: 1, heavy: 1 });
    const first = await enter('first', 'heavy');
    const second = enter('second', 'heavy');
    const left = new AbortController();
    const third = enter('third', 'heavy', 500, left.signal);
    third.catch(() => undefined);
    nowMs = 300;
    left.abort();
    first.leave(true);
    await second;
    await enter('light', 'light');
    expect(waits).toEqual(['heavy 0', 'heavy 300', 'light 0']);
  });

  test('each lane has its own slots, whatever runs and waits in the other', async () => {
    const { admission, enter, entered } = create({ light: 1, heavy: 1 }, 64);
    const light = await enter('light', 'light');
    const heavy = await enter('heavy', 'heavy');
    const waiting = [enter('second heavy', 'heavy'), enter('second light', 'light')];
    await vi.advanceTimersByTimeAsync(0);
    expect(entered).toEqual(['light', 'heavy']);
    light.leave(true);
    await waiting[1];
    expect(entered.slice(2)).toEqual(['second light']);
    expect([admission.heldSlotsOf('light'), admission.heldSlotsOf('heavy')]).toEqual([1, 1]);
    heavy.leave(true);
    await waiting[0];
    expect(entered.slice(3)).toEqual(['second heavy']);
  });

  describe('a slot that the heavy lane lends', () => {
    const hasIdleHeavy = (lane: Lane): boolean => lane === 'heavy';

    /** Two slots in each lane; both light ones are held. */
    const createFull = async (hasIdle = hasIdleHeavy) => {
      const pool = create({ light: 2, heavy: 2 }, 64, hasIdle);
      const light = [await pool.enter('a', 'light'), await pool.enter('b', 'light')];
      return { ...pool, light };
    };
    const heldSlots = (admission: Admission) =>
      [admission.heldSlotsOf('light'), admission.heldSlotsOf('heavy')] as const;

    test('goes to one light render at a time, and back to the next that waits', async () => {
      const { admission, enter, entered, light } = await createFull();
      expect(light.map(({ lane }) => lane)).toEqual(['light', 'light']);
      expect(admission.isCrowded('light', 10)).toBe(false);
      const borrowed = await enter('borrower', 'light');
      expect(borrowed.lane).toBe('heavy');
      const waiting = [enter('next', 'light'), enter('last', 'light')];
      await vi.advanceTimersByTimeAsync(0);
      expect(entered).toEqual(['a', 'b', 'borrower']);
      expect(heldSlots(admission)).toEqual([2, 1]);
      borrowed.leave(true);
      expect((await waiting[0])?.lane).toBe('heavy');
      light[0]?.leave(true);
      expect((await waiting[1])?.lane).toBe('light');
    });

    test('is for no light render while a heavy one runs', async () => {
      const { admission, enter } = await createFull();
      const heavy = await enter('heavy', 'heavy');
      const waiting = enter('waiting', 'light');
      await vi.advanceTimersByTimeAsync(0);
      expect(heldSlots(admission)).toEqual([2, 1]);
      heavy.leave(true);
      expect((await waiting).lane).toBe('heavy');
    });

    test('goes to a heavy render first', async () => {
      const { admission, enter, entered } = await createFull();
      const borrowed = await enter('borrower', 'light');
      await enter('beside it', 'heavy');
      const heavy = enter('heavy', 'heavy');
      const light = enter('light', 'light');
      light.catch(() => undefined);
      borrowed.leave(true);
      await heavy;
      expect(entered.slice(3)).toEqual(['beside it', 'heavy']);
      expect(admission.waitingIn('light')).toBe(1);
    });

    test('is not lent without an idle process of its lane, nor by a single core', async () => {
      const busy = await createFull(() => false);
      const single = create({ light: 1, heavy: 1 }, 64, hasIdleHeavy);
      await single.enter('a', 'light');
      for (const { admission, enter } of [busy, single]) {
        enter('waiting', 'light').catch(() => undefined);
        expect(admission.waitingIn('light')).toBe(1);
        expect(admission.heldSlotsOf('heavy')).toBe(0);
      }
    });

    test('is never one of the light lane, for a heavy render', async () => {
      const { admission, enter } = create({ light: 2, heavy: 1 }, 64, () => true);
      await enter('heavy', 'heavy');
      enter('waiting', 'heavy').catch(() => undefined);
      expect([...heldSlots(admission), admission.waitingIn('heavy')]).toEqual([0, 1, 1]);
    });

    test('has a light one kept empty for it while its borrower starves', async () => {
      const { admission, enter, light } = await createFull();
      const borrowed = await enter('borrower', 'light', 10);
      const waiting = enter('waiting', 'light');
      nowMs = 41; // four times the estimate are over
      light[0]?.leave(true);
      expect(heldSlots(admission)).toEqual([1, 1]);
      borrowed.leave(true);
      expect((await waiting).lane).toBe('light');
    });

    test('goes to one that waits already, where a process has become idle since', async () => {
      let hasIdle = false;
      const { enter, entered } = await createFull(() => hasIdle);
      const waiting = enter('waiting', 'light');
      hasIdle = true;
      enter('newcomer', 'light').catch(() => undefined);
      expect((await waiting).lane).toBe('heavy');
      expect(entered).toEqual(['a', 'b', 'waiting']);
    });

    test('is not lent for a minute after a borrower has starved', async () => {
      const { admission, enter } = await createFull();
      const starved = await enter('starved', 'light', 10);
      nowMs = 501;
      starved.leave(true);
      const next = enter('next', 'light');
      await vi.advanceTimersByTimeAsync(0);
      expect(heldSlots(admission)).toEqual([2, 0]);
      nowMs = 60_502;
      enter('last', 'light').catch(() => undefined);
      expect((await next).lane).toBe('heavy');
    });

    test('does not count for slow where its borrower is', async () => {
      const { admission, enter } = await createFull();
      await enter('borrower', 'light', 10);
      nowMs = 100;
      await enter('heavy', 'heavy', 500);
      enter('waiting', 'heavy', 500).catch(() => undefined);
      expect(admission.isCrowded('heavy', 500)).toBe(false);
    });

    test('teaches neither lane how long its renders take, and counts as estimated', async () => {
      const { admission, enter, light } = await createFull();
      for (let count = 0; count < 20; count += 1) {
        const borrowed = await enter('borrower', 'light', 10);
        nowMs += 400;
        expect(borrowed.leave(true)).toBe(10);
      }
      for (const slot of light) slot.leave(false);
      const fresh = ['heavy', 'heavy', 'light', 'light'] as const;
      await Promise.all(fresh.map((lane) => enter('anew', lane, lane === 'light' ? 10 : 500)));
      expect(admission.isCrowded('heavy', 500)).toBe(false);
      expect(admission.isCrowded('light', 10)).toBe(false);
    });
  });

  test('crowds of heavy renders leave the light ones theirs', async () => {
    const { enter } = create({ light: 2, heavy: 2 }, 64);
    const crowd = Array.from({ length: 50 }, (_, index) => enter(`heavy ${index}`, 'heavy'));
    for (const entering of crowd.slice(2)) entering.catch(() => undefined);
    await expect(
      Promise.all([enter('one', 'light'), enter('another', 'light')]),
    ).resolves.toHaveLength(2);
  });

  test('heavy renders that starve keep light slots empty, half of them at most, until they are done', async () => {
    const { admission, enter } = create({ light: 4, heavy: 4 }, 64);
    const heavy = await Promise.all(['a', 'b', 'c'].map((name) => enter(name, 'heavy', 500)));
    const light = await Promise.all(['d', 'e', 'f', 'g'].map((name) => enter(name, 'light')));
    const crowd = Array.from({ length: 6 }, (_, index) => enter(`waiting ${index}`, 'light'));
    nowMs = 2_000;
    light[0]?.leave(true);
    expect(admission.heldSlotsOf('light')).toBe(4); // four times the estimate are not over yet
    nowMs = 2_001;
    for (const slot of light.slice(1)) slot.leave(true);
    expect(admission.heldSlotsOf('light')).toBe(2);
    for (const [index, slot] of heavy.entries()) {
      slot.leave(true);
      expect(admission.heldSlotsOf('light')).toBe([2, 3, 4][index]);
    }
    await Promise.all(crowd.slice(0, 4));
    expect(admission.waitingIn('light')).toBe(2);
  });

  test('costly renders have half of the slots, and are overtaken while they wait', async () => {
    const { admission, enter, entered } = create({ light: 4, heavy: 4 }, 64);
    const costly = await Promise.all(['a', 'b'].map((name) => enter(name, 'heavy', 2_600)));
    const third = enter('third costly', 'heavy', 2_600);
    third.catch(() => undefined);
    await Promise.all(['c', 'd'].map((name) => enter(name, 'heavy', 500)));
    expect(entered).toEqual(['a', 'b', 'c', 'd']);
    expect(admission.waitingIn('heavy')).toBe(0); // the third was refused: it would wait for too long
    await expect(third).rejects.toMatchObject({ code: 'OVERLOADED', retryAfterSeconds: 3 });
    nowMs = 1_000;
    const patient = enter('patient costly', 'heavy', 2_600);
    const healthy = enter('healthy', 'heavy', 500);
    await vi.advanceTimersByTimeAsync(0);
    expect(admission.waitingIn('heavy')).toBe(2);
    costly[0]?.leave(true);
    await patient;
    costly[1]?.leave(true);
    await healthy;
  });

  test('a costly render that waits keeps no slot empty', async () => {
    const { enter, entered } = create({ light: 2, heavy: 2 }, 64);
    const costly = await enter('costly', 'heavy', 4_000);
    nowMs = 2_000;
    const waiting = enter('waiting', 'heavy', 4_000);
    for (let count = 0; count < 20; count += 1) {
      (await enter('healthy', 'heavy', 500)).leave(true);
    }
    expect(entered).not.toContain('waiting');
    costly.leave(true);
    await waiting;
  });

  test('a render that takes as long as a costly one counts for one', async () => {
    const { enter, entered } = create({ light: 2, heavy: 2 }, 64);
    await enter('as it shows', 'heavy', 1_000);
    nowMs = 2_501;
    const costly = enter('costly', 'heavy', 4_000);
    costly.catch(() => undefined);
    await enter('healthy', 'heavy', 500);
    expect(entered).toEqual(['as it shows', 'healthy']);
  });

  test('on a single core none is kept empty', async () => {
    const { admission, enter } = create({ light: 1, heavy: 1 });
    await enter('heavy', 'heavy', 500);
    nowMs = 10_000;
    await enter('light', 'light');
    expect(admission.heldSlotsOf('light')).toBe(1);
  });

  test('refuses at once what the number of those ahead forbids', async () => {
    const { enter } = create({ light: 1, heavy: 0 }, 1);
    await enter('running', 'light');
    enter('waiting', 'light').catch(() => undefined);
    await expect(enter('too many', 'light')).rejects.toMatchObject({
      code: 'OVERLOADED',
      retryAfterSeconds: 1,
    });
  });

  test('refuses at once what could not be served in time, and says when it could', async () => {
    const { enter } = create({ light: 1, heavy: 1 }, 64);
    await enter('running', 'heavy', 2_000);
    enter('waiting', 'heavy', 1_500).catch(() => undefined);
    // Half of the five seconds: the other half is for what was not foreseen.
    await expect(enter('hopeless', 'heavy', 200)).rejects.toMatchObject({
      code: 'OVERLOADED',
      retryAfterSeconds: 4,
    });
    nowMs = 1_000; // of which the running one has done one second
    const waiting = enter('in time', 'heavy', 200);
    waiting.catch(() => undefined);
    await expect(Promise.race([waiting, 'waits'])).resolves.toBe('waits');
  });

  /** Has light renders of 100 ms wait until one is refused; returns how many wait, and the refusal. */
  const fillLight = async ({ admission, enter }: ReturnType<typeof create>) => {
    for (;;) {
      const waiting = enter('light', 'light', 100);
      const refusal = await Promise.race([waiting, vi.advanceTimersByTimeAsync(0)]).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (refusal !== undefined) return { waiting: admission.waitingIn('light'), refusal };
      waiting.catch(() => undefined);
    }
  };

  test('foresees that those ahead share the slots of their lane', async () => {
    const pool = create({ light: 2, heavy: 2 }, 64);
    for (let count = 0; count < 2; count += 1) await pool.enter('heavy', 'heavy', 2_000);
    await pool.enter('light', 'light', 500);
    await pool.enter('light', 'light', 100);
    // (500 + 100 + 44 × 100 ms) ÷ 2 slots is all that may be foreseen.
    expect(await fillLight(pool)).toMatchObject({ waiting: 45, refusal: { retryAfterSeconds: 3 } });
    const beside = create({ light: 2, heavy: 2 }, 64);
    await beside.enter('light', 'light', 10_000);
    await beside.enter('light', 'light', 100);
    // The slot that stays busy for longer takes no part: 100 + 24 × 100 ms.
    expect(await fillLight(beside)).toMatchObject({
      waiting: 25,
      refusal: { retryAfterSeconds: 3 },
    });
  });

  test('foresees by those that run, too, that renders take longer than was learned', async () => {
    const pool = create({ light: 1, heavy: 1 }, 64);
    await pool.enter('light', 'light', 100);
    nowMs = 400; // and perhaps 200 more; and the others 400 each
    expect(await fillLight(pool)).toMatchObject({ waiting: 6, refusal: { retryAfterSeconds: 3 } });
  });

  test('learns how fast the machine is, and is not thrown by a single render', async () => {
    const { enter } = create({ light: 2, heavy: 1 }, 64);
    const renderOne = async (heldMs: number, isMeasured = true) => {
      const slot = await enter('render', 'light', 100);
      nowMs += heldMs;
      slot.leave(isMeasured);
    };
    // 20 of 100 ms ahead are 2 s on this machine: in time.
    const waitBehindTwenty = async () => {
      const client = new AbortController();
      setMaxListeners(0, client.signal); // one client, in all of these places
      const slots = [await enter('one', 'light', 100), await enter('other', 'light', 100)];
      const queue = Array.from({ length: 20 }, () => enter('queued', 'light', 100, client.signal));
      for (const entering of queue) entering.catch(() => undefined);
      const last = enter('last', 'light', 100, client.signal).then(
        () => 'admitted',
        (error: Error) => error.message,
      );
      client.abort(new Error('was waiting'));
      for (const { leave } of slots) leave(false);
      return last;
    };
    expect(await waitBehindTwenty()).toBe('was waiting');
    await renderOne(15_000); // one that was killed at its deadline
    for (let round = 0; round < 16; round += 1) await renderOne(100);
    expect(await waitBehindTwenty()).toBe('was waiting');
    for (let round = 0; round < 40; round += 1) await renderOne(400); // four times slower: 8 s
    expect(await waitBehindTwenty()).toBe('The service is at its capacity; try again later.');
    // Those that were stopped before they had begun.
    for (let round = 0; round < 40; round += 1) await renderOne(0, false);
    expect(await waitBehindTwenty()).toBe('The service is at its capacity; try again later.');
  });

  test('refuses a render that has waited too long, and gives the slot to the next', async () => {
    const { enter } = create({ light: 1, heavy: 0 });
    const running = await enter('running', 'light');
    const refused = expect(enter('late', 'light')).rejects.toMatchObject({ code: 'OVERLOADED' });
    await vi.advanceTimersByTimeAsync(4_999);
    const next = enter('next', 'light');
    await vi.advanceTimersByTimeAsync(1);
    await refused;
    running.leave(true);
    await expect(next).resolves.toBeDefined();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('forgets a render that leaves the queue', async () => {
    const { enter } = create({ light: 1, heavy: 0 });
    const running = await enter('running', 'light');
    const client = new AbortController();
    const gone = enter('gone', 'light', 10, client.signal);
    const next = enter('next', 'light');
    client.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    running.leave(true);
    await expect(next).resolves.toBeDefined();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('gives no slot to a client that has left already', async () => {
    const { enter } = create({ light: 1, heavy: 0 });
    const left = AbortSignal.abort(new Error('gone'));
    await expect(enter('gone', 'light', 10, left)).rejects.toThrow('gone');
    await expect(enter('next', 'light')).resolves.toBeDefined();
  });
});
