import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { type FlightControls, SingleFlight } from '../../src/pipeline/single-flight.ts';
import { type Deferred, defer, settle } from '../support/deferred.ts';
import { collectGarbage } from '../support/processes/garbage.ts';
import { expectNoUnhandledRejections } from '../support/unhandled-rejections.ts';

expectNoUnhandledRejections();

// Who shares, leaves, comes late and begins anew: the crowds, bursts and races of test/cache. Here is what needs a moment
// that no request can be brought to.

/** A flight whose work is a promise in our hands, with everything that happens to it counted. */
function createFlights() {
  const flights = new SingleFlight<Promise<string>>();
  const works: ({ readonly work: Deferred<string> } & FlightControls)[] = [];
  const begin = (controls: FlightControls): Promise<string> => {
    const work = defer<string>();
    works.push({ work, ...controls });
    return work.promise;
  };
  const use = (work: Promise<string>, isJoined: boolean) =>
    work.then((value) => ({ value, isJoined }));
  const join = (key: string, signal = new AbortController().signal, first = begin) =>
    flights.run(key, signal, first, use);
  return { flights, works, begin, join };
}

test('a user who has left before joining begins nothing', async () => {
  const { join, works } = createFlights();
  await expect(join('a', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
  expect(works).toHaveLength(0);
});

test('a user who leaves while the work begins leaves the work and a clean signal behind', async () => {
  const client = new AbortController();
  const { join, works, begin, flights } = createFlights();
  const gone = join('a', client.signal, (controls) => {
    client.abort(new Error('gone'));
    return begin(controls);
  });
  await expect(gone).rejects.toThrow('gone');
  expect([works[0]?.signal.aborted, flights.size]).toEqual([true, 0]);
  expect(getEventListeners(client.signal, 'abort')).toEqual([]);
  works[0]?.work.reject(new Error('for no user')); // and no one has to catch it
  await settle();
});

test('a user who asks for a key at the moment of its abort starts new work', async () => {
  const client = new AbortController();
  const { join, works } = createFlights();
  const gone = join('a', client.signal);
  const again: Promise<unknown>[] = [];
  works[0]?.signal.addEventListener('abort', () => again.push(join('a')));
  client.abort(new Error('gone'));
  await expect(gone).rejects.toThrow('gone');
  works[0]?.work.resolve('old');
  works[1]?.work.resolve('new');
  expect(await again[0]).toEqual({ value: 'new', isJoined: false });
});

test('work that is worth keeping keeps the flight, unless it is marked too late', async () => {
  const client = new AbortController();
  const { flights, join, works } = createFlights();
  const gone = join('a', client.signal);
  const kept = defer<string>();
  works[0]?.keep(kept.promise);
  client.abort(new Error('gone'));
  await expect(gone).rejects.toThrow('gone');
  const next = join('a');
  works[0]?.work.resolve('one');
  expect(await next).toEqual({ value: 'one', isJoined: true });
  kept.reject(new Error('failed in the end'));
  await expect.poll(() => flights.size).toBe(0);
  join('a').catch(() => undefined);
  works[0]?.keep(Promise.resolve());
  await settle();
  expect([flights.size, works.length]).toEqual([1, 2]);
  works[1]?.work.resolve('two');
});

test('a user who has left is forgotten, though the work still takes its time', async () => {
  const { join, works } = createFlights();
  const stayed = join('a');
  const leave = (): WeakRef<object> => {
    const client = new AbortController();
    const luggage = { any: 'thing' };
    const wait = async () => ({ value: await join('a', client.signal), luggage });
    wait().catch(() => undefined);
    client.abort(luggage); // as the stack of a real reason holds the response it came from
    return new WeakRef(luggage);
  };
  const left = Array.from({ length: 100 }, leave);
  await settle();
  collectGarbage();
  // The engine itself was seen to hold one of them; what is not forgotten would hold all.
  expect(left.filter((luggage) => luggage.deref() !== undefined).length).toBeLessThan(10);
  works[0]?.work.resolve('value');
  expect(await stayed).toEqual({ value: 'value', isJoined: false });
});
