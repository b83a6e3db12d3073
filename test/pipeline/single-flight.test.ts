import { expect, test } from 'vitest';
import { unlessAborted } from '../../src/pipeline/abort.ts';
import { createStorageBackend } from '../../src/pipeline/originals/backend.ts';
import { BackgroundHashes } from '../../src/pipeline/originals/digests.ts';
import { OriginalFlight } from '../../src/pipeline/originals/original-flight.ts';
import { locateOriginal } from '../../src/pipeline/originals/originals.ts';
import { OriginalRecords } from '../../src/pipeline/originals/records.ts';
import { RequestTrace } from '../../src/pipeline/request-trace.ts';
import type { Services } from '../../src/pipeline/services.ts';
import { type FlightControls, SingleFlight } from '../../src/pipeline/single-flight.ts';
import { defer, settle } from '../support/deferred.ts';
import { FakeClock } from '../support/test-app.ts';

// Sharing, leaving and late requests are tested in test/cache. These tests need timings that requests cannot produce.

/** Returns a function that joins one flight; its `work` is the controls of the flight. */
function createFlights() {
  const flights = new SingleFlight<FlightControls>(() => true);
  return () => flights.join('a', (controls) => controls);
}

test('many users wait for one flight without a warning of a memory leak', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): unknown => warnings.push(warning);
  process.on('warning', note);
  const { work, leave } = createFlights()();
  const waiting = Array.from({ length: 20 }, () =>
    unlessAborted(new Promise<void>(() => undefined), work.signal),
  );
  leave();
  const endings = await Promise.allSettled(waiting);
  await settle();
  process.off('warning', note);
  expect(endings.every(({ status }) => status === 'rejected')).toBe(true);
  expect(warnings).toEqual([]);
});

test('a user who joins during the abort starts new work', () => {
  const join = createFlights();
  const left = join();
  const again: boolean[] = [];
  left.work.signal.addEventListener('abort', () => again.push(join().isJoined));
  left.leave();
  expect(again).toEqual([false]);
});

test('keepAlive keeps the flight, unless it is called after the abort', async () => {
  const join = createFlights();
  const left = join();
  const kept = defer<void>();
  left.work.keepAlive(kept.promise);
  left.leave();
  const next = join();
  expect(next.isJoined).toBe(true);
  next.leave();
  expect(left.work.signal.aborted).toBe(false);
  kept.reject(new Error('failed in the end'));
  await settle();
  expect(left.work.signal.aborted).toBe(true);
  left.work.keepAlive(Promise.resolve());
  expect(join().isJoined).toBe(false);
});

test('an original retains no promise for each waiting request', async () => {
  const clock = new FakeClock();
  const opened = defer<never>();
  const source = { identity: 'tag', open: () => opened.promise } as const;
  const limits = { firstByteTimeoutMs: 9_000, bodyTimeoutMs: 9_000, maxOriginalBytes: 1 };
  const services = {
    storage: createStorageBackend(source, limits, {} as never),
    records: new OriginalRecords({ freshForMs: 0, missingForMs: 0 }, clock),
    clock,
  } satisfies Partial<Services>;
  const flight = { signal: new AbortController().signal, keepAlive: () => undefined };
  const original = new OriginalFlight(
    services as unknown as Services,
    locateOriginal(services, { originKey: 'icons/1/a' }),
    flight,
  );
  const trace = new RequestTrace(clock);
  const identify = () => original.identify(trace, 'identity');
  const inspect = () => original.inspect('tag', () => opened.promise);
  const shared = [identify, inspect].map((wait) => {
    const promise = wait();
    expect(wait()).toBe(promise);
    return promise;
  });
  opened.reject(new Error('The storage is left.'));
  for (const promise of shared) await expect(promise).rejects.toThrow('left');
});

test('many background hashes wait without a warning of a memory leak', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): unknown => warnings.push(warning);
  process.on('warning', note);
  const source = { identity: 'tag', open: () => new Promise<never>(() => undefined) } as const;
  const limits = { firstByteTimeoutMs: 9_000, bodyTimeoutMs: 9_000, maxOriginalBytes: 1 };
  const backend = createStorageBackend(source, limits, {} as never);
  const closing = new AbortController();
  const begin = ({ originKey }: { readonly originKey: string }) => ({
    originKey,
    sourceKey: originKey,
    backend,
  });
  const hashes = new BackgroundHashes({} as never, begin, closing.signal);
  for (let id = 0; id < 20; id += 1) {
    const originKey = `attachments/1/${id}/a`;
    hashes.hashSoon({ originKey, sourceKey: originKey, backend });
  }
  await settle();
  closing.abort();
  await settle();
  process.off('warning', note);
  expect(warnings).toEqual([]);
});
