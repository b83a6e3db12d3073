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

  const create = (slots = { light: 1, heavy: 1 }, maxWaitingPerSlot = 2) => {
    const waits: string[] = [];
    const admission = new Admission({ slots, maxWaitingPerSlot, maxWaitMs: 5_000 }, clock, {
      noteQueueWait: (lane, waitedMs) => void waits.push(`${lane} ${waitedMs}`),
    });
    const entered: string[] = [];
    const enter = async (
      name: string,
      lane: Lane,
      costMs = lane === 'light' ? 10 : 500,
      signal = never(),
      mayBorrow = true,
    ): Promise<Slot> => {
      const slot = await admission.enter(lane, { costMs, mayBorrow }, signal);
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
    await expect(enter('fourth', 'light')).resolves.toMatchObject({ lane: 'light' });
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

  test('a light render takes the slot of a heavy one, but a long heavy one never that of a light one', async () => {
    const { enter, entered } = create();
    const slots = [await enter('light', 'light'), await enter('light too', 'light')];
    expect(slots.map(({ lane }) => lane)).toEqual(['light', 'heavy']);
    const heavy = enter('heavy', 'heavy');
    slots[0]?.leave(true);
    await vi.advanceTimersByTimeAsync(0);
    expect(entered).toEqual(['light', 'light too']);
    slots[1]?.leave(true);
    expect((await heavy).lane).toBe('heavy');
  });

  test('short heavy renders take light slots, but only those that no light render waits for', async () => {
    const { enter, entered } = create({ light: 1, heavy: 1 }, 64);
    const [long, short] = [await enter('long', 'heavy'), await enter('short', 'heavy', 80)];
    expect([long, short].map(({ lane }) => lane)).toEqual(['heavy', 'light']);
    const waiting = [
      enter('second long', 'heavy'),
      enter('second short', 'heavy', 80),
      enter('light', 'light'),
    ];
    short.leave(false);
    await vi.advanceTimersByTimeAsync(0);
    expect(entered.slice(2)).toEqual(['light']);
    (await waiting[2])?.leave(false);
    await vi.advanceTimersByTimeAsync(0);
    expect(entered.slice(3)).toEqual(['second short']);
    expect((await waiting[1])?.lane).toBe('light');
    long.leave(false);
    expect((await waiting[0])?.lane).toBe('heavy');
  });

  test('a heavy render that has been too slow for a light slot takes none', async () => {
    const { enter } = create();
    await enter('heavy', 'heavy');
    const slow = enter('slow', 'heavy', 80, never(), false);
    expect(await Promise.race([slow, 'waits'])).toBe('waits');
    (await enter('light', 'light')).leave(false);
    expect(await Promise.race([slow, 'waits'])).toBe('waits');
  });

  test('flat pictures, which take less than their estimate, let no other render borrow a slot', async () => {
    const { enter } = create();
    for (let round = 0; round < 40; round += 1) {
      const slot = await enter('flat', 'heavy');
      nowMs += 50; // a tenth
      slot.leave(true);
    }
    await enter('one', 'heavy');
    const other = enter('other', 'heavy', 300);
    expect(await Promise.race([other, 'waits'])).toBe('waits');
  });

  test('a render that has become short by what was measured takes a free light slot at once', async () => {
    const { enter, entered } = create({ light: 1, heavy: 1 }, 64);
    const teach = async (factor: number): Promise<void> => {
      const slot = await enter('teacher', 'heavy', 1_000, never(), false);
      nowMs += 1_000 * factor;
      slot.leave(true);
    };
    for (let round = 0; round < 3; round += 1) await teach(2);
    const holder = await enter('holder', 'heavy', 1_000, never(), false);
    const waiting = [enter('first', 'heavy', 120), enter('second', 'heavy', 120)];
    await vi.advanceTimersByTimeAsync(0);
    expect(entered.slice(-1)).toEqual(['holder']);
    nowMs += 10; // so little that the estimate for the others falls below 150 ms
    holder.leave(true);
    expect(await Promise.all(waiting.map(async (slot) => (await slot).lane))).toEqual([
      'heavy',
      'light',
    ]);
  });

  test('a short heavy render is not refused while a light slot is free, however crowded its lane is', async () => {
    const { admission, enter } = create({ light: 1, heavy: 1 }, 64);
    await enter('hours of work', 'heavy', 10_000);
    const check = (costMs: number) => () => admission.check('heavy', { costMs, mayBorrow: true });
    expect(check(50)).not.toThrow();
    expect(check(500)).toThrow('The service is at its capacity');
    await enter('light', 'light');
    expect(check(50)).toThrow('The service is at its capacity');
  });

  test('how short a heavy render is goes by how fast the machine is', async () => {
    const { enter } = create();
    for (let round = 0; round < 40; round += 1) {
      const slot = await enter('heavy', 'heavy', 80);
      nowMs += 160; // twice as slow
      slot.leave(true);
    }
    await enter('one', 'heavy', 80);
    const other = enter('other', 'heavy', 80);
    await enter('light', 'light');
    expect(await Promise.race([other, 'waits'])).toBe('waits');
    other.catch(() => undefined);
  });

  test('a freed slot of the heavy lane goes to a heavy render first, then to a light one', async () => {
    const { enter, entered } = create();
    await enter('light', 'light');
    const running = await enter('heavy', 'heavy');
    const light = enter('waiting light', 'light');
    const heavy = enter('waiting heavy', 'heavy');
    running.leave(true);
    (await heavy).leave(true);
    await light;
    expect(entered).toEqual(['light', 'heavy', 'waiting heavy', 'waiting light']);
  });

  test('crowds of heavy renders leave the light ones theirs', async () => {
    const { enter } = create({ light: 2, heavy: 1 }, 64);
    const crowd = Array.from({ length: 50 }, (_, index) => enter(`heavy ${index}`, 'heavy'));
    for (const entering of crowd.slice(1)) entering.catch(() => undefined);
    const light = [await enter('one', 'light'), await enter('another', 'light')];
    expect(light.map(({ lane }) => lane)).toEqual(['light', 'light']);
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

  test('foresees that light renders have all slots, while no heavy one waits', async () => {
    const pool = create({ light: 1, heavy: 1 }, 64);
    await pool.enter('heavy', 'heavy', 500);
    await pool.enter('light', 'light', 100);
    // (500 + 100 + 44 × 100 ms) ÷ 2 slots is all that may be foreseen.
    expect(await fillLight(pool)).toMatchObject({ waiting: 45, refusal: { retryAfterSeconds: 3 } });
    pool.enter('heavy too', 'heavy', 500).catch(() => undefined);
    expect(await fillLight(pool)).toMatchObject({ waiting: 45, refusal: { retryAfterSeconds: 5 } });
  });

  test('foresees no more than what their own slots take, whatever is in the others', async () => {
    const pool = create({ light: 1, heavy: 1 }, 64);
    await pool.enter('heavy', 'heavy', 60_000);
    await pool.enter('light', 'light', 100);
    expect(await fillLight(pool)).toMatchObject({ waiting: 25, refusal: { retryAfterSeconds: 3 } });
  });

  test('a borrowed light slot is foreseen to be held for as long as such heavy renders take', async () => {
    const pool = create({ light: 1, heavy: 1 }, 64);
    for (let round = 0; round < 80; round += 1) {
      const slot = await pool.enter('heavy', 'heavy', 500);
      nowMs += 50; // a tenth of what is estimated
      slot.leave(true);
    }
    await pool.enter('heavy', 'heavy', 60_000);
    await pool.enter('borrower', 'heavy', 100);
    // 10 ms of it, and 24 × 100.
    expect(await fillLight(pool)).toMatchObject({ waiting: 25 });
    nowMs += 20; // It should be over, were it one of those.
    expect(await fillLight(pool)).toMatchObject({ waiting: 26 });
  });

  test('learns how fast the machine is, and is not thrown by a single render', async () => {
    const { enter } = create({ light: 1, heavy: 1 }, 64);
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
    await expect(next).resolves.toMatchObject({ lane: 'light' });
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
    await expect(next).resolves.toMatchObject({ lane: 'light' });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('gives no slot to a client that has left already', async () => {
    const { enter } = create({ light: 1, heavy: 0 });
    const left = AbortSignal.abort(new Error('gone'));
    await expect(enter('gone', 'light', 10, left)).rejects.toThrow('gone');
    await expect(enter('next', 'light')).resolves.toMatchObject({ lane: 'light' });
  });
});
