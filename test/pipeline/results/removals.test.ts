import { expect, test } from 'vitest';
import { GuardedStore } from '../../../src/pipeline/results/store.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { FakeClock } from '../../support/test-app.ts';

test('rejects removals above the maximum number of waiting ones, without counting them against the origin', async () => {
  const hanging = new MemoryResultStore();
  hanging.remove = () => new Promise(() => undefined);
  const meter = { count: () => undefined } as never;
  const store = new GuardedStore(hanging, {
    clock: new FakeClock(),
    log: new RecordedLog(),
    meter,
  });
  const remove = () => store.remove(['icons/1/ab/'], () => false);
  for (let index = 0; index < 66; index += 1) void remove().catch(() => undefined);
  await expect(remove()).rejects.toMatchObject({ code: 'OVERLOADED', bottleneck: 'requests' });
});
