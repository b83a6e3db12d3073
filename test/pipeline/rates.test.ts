import { expect, test } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { Rates } from '../../src/pipeline/rates.ts';
import { RecordedLog } from '../support/recorded-log.ts';
import { FakeClock } from '../support/test-app.ts';

function start(requests: number, windowMs: number) {
  const clock = new FakeClock();
  const rates = new Rates(
    { requests, windowMs },
    { clock, wallClock: () => 0, log: new RecordedLog() },
  );
  /** Starts a small render; returns the milliseconds to wait above the limit. */
  const waitOf = (): number => {
    try {
      rates.charge('a client', 1);
      return 0;
    } catch (error) {
      return error instanceof MediaError ? (error.retryAfterSeconds ?? 0) * 1000 : Number.NaN;
    }
  };
  return { clock, rates, waitOf };
}

// Other tests of rates: test/http/media/rates.test.ts.
test('remembers a limited number of clients, the last ones', () => {
  const { rates } = start(1, 60_000);
  for (let index = 0; index < 100_100; index += 1) rates.charge(`client ${index}`, 1);
  expect(rates.clients).toBe(100_000);
  expect(() => rates.charge('client 100099', 1)).toThrow();
  expect(() => rates.charge('client 5', 1)).not.toThrow();
});

test.each([
  [7, 3],
  [1_000_000, 86_400],
  [11, 86_399],
  [999_983, 1],
])(
  'serves a client that waits for retry_after, with a limit of %i in %i s',
  (requests, windowSeconds) => {
    const { clock, rates, waitOf } = start(requests, windowSeconds * 1000);
    clock.advance(Math.PI * 1e6);
    const [charge, other] = [rates.charge('a client', 1), rates.charge('a client', 1)];
    clock.advance(1e9);
    charge.addRun(1e9);
    charge.end(); // the debt is one window, of which one unit has become available
    expect(waitOf()).toBe(0);
    other.addRun(1e9);
    other.end(); // the debt is at most one window
    const waitMs = waitOf();
    expect(waitMs).toBeGreaterThan(0);
    expect(waitMs).toBeLessThanOrEqual(Math.ceil((windowSeconds * 1000) / requests) + 1);
    clock.advance(waitMs);
    expect(waitOf()).toBe(0);
  },
);
