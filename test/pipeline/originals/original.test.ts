import { expect, test } from 'vitest';
import { createStorageBackend } from '../../../src/pipeline/originals/backend.ts';
import { Original, type OriginalParts } from '../../../src/pipeline/originals/original.ts';
import { OriginalRecords } from '../../../src/pipeline/originals/records.ts';
import { RequestTrace } from '../../../src/pipeline/request-trace.ts';
import { FakeClock } from '../../support/test-app.ts';

const clock = new FakeClock();
const never = new Promise<never>(() => undefined);

/** Original of a storage that does not respond. */
function createOriginal(): Original {
  const limits = {
    firstByteTimeoutMs: 60_000,
    wholeBodyTimeoutMs: 60_000,
    maxOriginalBytes: 1_000,
  };
  const source = { identity: 'tag', open: () => never } as const;
  const parts: Partial<OriginalParts> = {
    storage: createStorageBackend(source, limits, {} as never),
    records: new OriginalRecords({ freshForMs: 0, goneForMs: 0, refusedForMs: 0 }, clock),
    clock,
  };
  const flight = { signal: new AbortController().signal, keep: () => undefined };
  return new Original(parts as OriginalParts, { originKey: 'icons/1/a' }, flight);
}

test('an original keeps no promise for each of the requests that wait for it', () => {
  const original = createOriginal();
  const trace = new RequestTrace(clock);
  const identify = () => original.identify({ isIdentityEnough: true, hasResult: false, trace });
  const inspect = () => original.inspect('tag', () => never);
  void identify();
  for (const wait of [identify, inspect]) {
    const shared = wait();
    for (let count = 0; count < 3; count += 1) expect(wait()).toBe(shared);
  }
});
