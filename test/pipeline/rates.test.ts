import { expect, test } from 'vitest';
import { Rates } from '../../src/pipeline/rates.ts';
import { RecordedLog } from '../support/recorded-log.ts';
import { FakeClock } from '../support/test-app.ts';

// All else that is said of rates: test/http/media/rates.test.ts.
test('memory is bounded, whatever the number of clients; those that came last are known', () => {
  const parts = { clock: new FakeClock(), wallClock: () => 0, log: new RecordedLog() };
  const rates = new Rates({ requests: 1, windowMs: 60_000 }, parts);
  for (let index = 0; index < 100_100; index += 1) rates.charge(`client ${index}`, 1);
  expect(rates.clients).toBe(100_000);
  expect(() => rates.charge('client 100099', 1)).toThrow();
  expect(() => rates.charge('client 5', 1)).not.toThrow();
});
