import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { type FlightControls, SingleFlight } from '../../src/pipeline/single-flight.ts';
import { type Deferred, defer, settle } from '../support/deferred.ts';
import { expectNoUnhandledRejections } from '../support/unhandled-rejections.ts';

expectNoUnhandledRejections();

/** A flight whose work is a promise in our hands, with everything that happens to it counted. */
function createFlights() {
  const flights = new SingleFlight<Promise<string>>();
  const works: ({ readonly work: Deferred<string> } & FlightControls)[] = [];
  const join = (key: string, signal = new AbortController().signal) =>
    flights.run(
      key,
      signal,
      (controls) => {
        const work = defer<string>();
        works.push({ work, ...controls });
        return work.promise;
      },
      (work, isJoined) => work.then((value) => ({ value, isJoined })),
    );
  const workAt = (index: number) => {
    const found = works[index];
    if (found === undefined) throw new Error(`work ${index} was not begun`);
    return found;
  };
  return { flights, works, join, workAt };
}

describe('single flight', () => {
  test('the last one out aborts the work, and nothing is left behind', async () => {
    const { flights, join, workAt } = createFlights();
    const [one, two] = [new AbortController(), new AbortController()];
    const users = [join('a', one.signal), join('a', two.signal)];
    one.abort();
    await expect(users[0]).rejects.toThrow();
    expect(workAt(0).signal.aborted).toBe(false);
    two.abort();
    await expect(users[1]).rejects.toThrow();
    expect(workAt(0).signal.aborted).toBe(true);
    expect(flights.size).toBe(0);
  });

  test('a user who has left before joining begins nothing', async () => {
    const { join, works } = createFlights();
    await expect(join('a', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(works).toHaveLength(0);
  });

  test('a user who leaves while the work begins leaves the work and a clean signal behind', async () => {
    const client = new AbortController();
    const flights = new SingleFlight<Promise<string>>();
    const work = defer<string>();
    let shared: AbortSignal | undefined;
    const gone = flights.run(
      'a',
      client.signal,
      ({ signal }) => {
        shared = signal;
        client.abort(new Error('gone'));
        return work.promise;
      },
      (promise) => promise,
    );
    await expect(gone).rejects.toThrow('gone');
    expect(shared?.aborted).toBe(true);
    expect(getEventListeners(client.signal, 'abort')).toEqual([]);
    work.reject(new Error('for no user')); // and no one has to catch it
    await settle();
  });

  test('a work that runs its own key while it begins takes nothing from other users', async () => {
    const { flights, join, works, workAt } = createFlights();
    const [outerWork, { signal }] = [defer<string>(), new AbortController()];
    let inner: Promise<unknown> | undefined;
    const outer = flights.run(
      'a',
      signal,
      () => {
        inner = join('a');
        return outerWork.promise;
      },
      (work) => work,
    );
    workAt(0).work.resolve('inner');
    expect(await inner).toEqual({ value: 'inner', isJoined: false });
    // The outer one is still running, and can be joined.
    expect(flights.size).toBe(1);
    const late = join('a');
    outerWork.resolve('outer');
    expect(await outer).toBe('outer');
    expect(await late).toEqual({ value: 'outer', isJoined: true });
    expect(works).toHaveLength(1);
    expect(flights.size).toBe(0);
  });

  test('a work that is retired is joined no more, and serves those who have joined it', async () => {
    const { flights, join, works, workAt } = createFlights();
    const client = new AbortController();
    const early = [join('a'), join('a', client.signal), join('b')];
    flights.retire((key) => key === 'a');
    const late = join('a');
    expect(works).toHaveLength(3);
    expect(works.map(({ isRetired }) => isRetired())).toEqual([true, false, false]);
    client.abort(new Error('gone'));
    await expect(early[1]).rejects.toThrow('gone');
    expect(workAt(0).signal.aborted).toBe(false);
    workAt(0).work.resolve('old');
    expect(await early[0]).toEqual({ value: 'old', isJoined: false });
    expect(workAt(0).signal.aborted).toBe(true);
    // Its end does not take the place of the one that came after it.
    const latest = join('a');
    workAt(2).work.resolve('new');
    expect(await late).toEqual({ value: 'new', isJoined: false });
    expect(await latest).toEqual({ value: 'new', isJoined: true });
    workAt(1).work.resolve('other');
    expect(await early[2]).toEqual({ value: 'other', isJoined: false });
    expect(flights.size).toBe(0);
  });

  test('what is worth keeping keeps the flight, though all users have left', async () => {
    const { flights, join, works, workAt } = createFlights();
    const client = new AbortController();
    const gone = join('a', client.signal);
    const kept = defer<string>();
    workAt(0).keep(kept.promise);
    client.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    expect(workAt(0).signal.aborted).toBe(false);

    const next = join('a');
    expect(works).toHaveLength(1);
    workAt(0).work.resolve('one');
    expect(await next).toEqual({ value: 'one', isJoined: true });
    expect(workAt(0).signal.aborted).toBe(false);

    kept.reject(new Error('failed in the end'));
    await expect.poll(() => flights.size).toBe(0);
    expect(workAt(0).signal.aborted).toBe(true);
    workAt(0).keep(Promise.resolve()); // too late: a new flight is not held by it
    join('a').catch(() => undefined);
    expect(works).toHaveLength(2);
  });
});
