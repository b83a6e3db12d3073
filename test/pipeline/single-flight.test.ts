import { expect, test } from 'vitest';
import { type FlightControls, SingleFlight } from '../../src/pipeline/single-flight.ts';
import { defer, settle } from '../support/deferred.ts';

// Who shares, leaves, comes late and begins anew: the crowds, bursts and races of test/cache. Here is what needs a moment
// that no request can be brought to.

/** Flights whose works are the controls that each was given. */
function createFlights() {
  const flights = new SingleFlight<FlightControls>(() => true);
  return () => flights.join('a', (controls) => controls);
}

test('a user who asks for a key at the moment of its abort starts new work', () => {
  const join = createFlights();
  const gone = join();
  const again: boolean[] = [];
  gone.work.signal.addEventListener('abort', () => again.push(join().isJoined));
  gone.leave();
  expect(again).toEqual([false]);
});

test('work that is worth keeping keeps the flight, unless it is marked too late', async () => {
  const join = createFlights();
  const gone = join();
  const kept = defer<void>();
  gone.work.keep(kept.promise);
  gone.leave();
  const next = join();
  expect(next.isJoined).toBe(true);
  next.leave();
  expect(gone.work.signal.aborted).toBe(false);
  kept.reject(new Error('failed in the end'));
  await settle();
  expect(gone.work.signal.aborted).toBe(true);
  gone.work.keep(Promise.resolve());
  expect(join().isJoined).toBe(false);
});
