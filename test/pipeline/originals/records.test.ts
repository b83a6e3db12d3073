import { expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { OriginalRecords } from '../../../src/pipeline/originals/records.ts';
import { FakeClock } from '../../support/test-app.ts';

test('faults of work without a request evict no refusal of a request', () => {
  const periods = { freshForMs: 1_000, goneForMs: 1_000, refusedForMs: 1_000 };
  const records = new OriginalRecords(periods, new FakeClock());
  const fault = new MediaError('UNPROCESSABLE_MEDIA');
  records.noteRefusal('icons/1/a?size=16', 'icons/1/a', fault);
  for (let index = 0; index < 20_000; index += 1) {
    records.noteRefusal(undefined, `icons/2/${index}`, fault);
  }
  expect(() => records.throwIfRefused('icons/1/a?size=16', 'icons/1/a')).toThrow(MediaError);
});
