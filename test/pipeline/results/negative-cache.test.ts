import { beforeEach, describe, expect, test } from 'vitest';
import { type ErrorCode, MediaError } from '../../../src/contract/errors.ts';
import { WorkerLost } from '../../../src/pipeline/ports.ts';
import { NegativeCache } from '../../../src/pipeline/results/negative-cache.ts';
import { FakeClock } from '../../support/test-app.ts';

const lost = (code: ErrorCode) => new MediaError(code, { cause: new WorkerLost('killed') });

describe('the negative cache', () => {
  let clock: FakeClock;
  let memory: NegativeCache;
  beforeEach(() => {
    clock = new FakeClock();
    memory = new NegativeCache(300_000, clock);
  });

  test.each([
    ['UNSUPPORTED_MEDIA_TYPE', 300_000],
    ['MEDIA_TOO_LARGE', 300_000],
    ['UNPROCESSABLE_MEDIA', 300_000],
    ['TRANSFORM_TIMEOUT', 60_000],
  ] as const)('keeps a %s for %d ms', (code, forMs) => {
    memory.note('a?size=1', 'a', new MediaError(code));
    clock.advance(forMs - 1);
    expect(memory.find('a?size=1')).toMatchObject({ code });
    expect(memory.find('a?size=2')).toBeUndefined();
    clock.advance(1);
    expect(memory.find('a?size=1')).toBeUndefined();
  });

  test.each(['ORIGIN_ERROR', 'ORIGIN_TIMEOUT', 'OVERLOADED', 'UNKNOWN_MEDIA'] as const)(
    'does not keep %s, which the next moment may mend',
    (code) => {
      memory.note('a?size=1', 'a', new MediaError(code));
      expect(memory.find('a?size=1')).toBeUndefined();
    },
  );

  test('keeps nothing where it is to be kept for no time', () => {
    const cache = new NegativeCache(0, clock);
    cache.note('a?size=1', 'a', new MediaError('UNPROCESSABLE_MEDIA'));
    expect(cache.find('a?size=1')).toBeUndefined();
  });

  test('does not keep what is no refusal at all', () => {
    memory.note('a?size=1', 'a', new Error('a bug'));
    expect(memory.find('a?size=1')).toBeUndefined();
  });

  test('leaves an original alone that has cost three workers, in whatever sizes', () => {
    memory.note('a?size=1', 'a', lost('UNPROCESSABLE_MEDIA'));
    // The same again costs none.
    expect(memory.find('a?size=1')).toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    memory.note('a?size=2', 'a', lost('UNPROCESSABLE_MEDIA'));
    memory.note('a?size=3', 'a', new MediaError('UNPROCESSABLE_MEDIA')); // cost none
    expect(() => memory.checkOriginal('a')).not.toThrow();
    memory.note('a?size=4', 'a', lost('UNPROCESSABLE_MEDIA'));
    expect(() => memory.checkOriginal('a')).toThrow(
      expect.objectContaining({ code: 'UNPROCESSABLE_MEDIA' }),
    );
    expect(() => memory.checkOriginal('b')).not.toThrow();
    clock.advance(600_000);
    expect(() => memory.checkOriginal('a')).not.toThrow();
  });

  test('leaves an original alone for ten minutes that has passed the deadline once', () => {
    const timeout = expect.objectContaining({ code: 'TRANSFORM_TIMEOUT' });
    memory.note('a?size=1', 'a', lost('TRANSFORM_TIMEOUT'));
    expect(() => memory.checkOriginal('b')).not.toThrow();
    clock.advance(599_000);
    // Its refusal is known for its other sizes too, and not beyond the ten minutes.
    memory.note('a?size=2', 'a', new MediaError('TRANSFORM_TIMEOUT'));
    clock.advance(999);
    expect(memory.find('a?size=2')).toMatchObject({ code: 'TRANSFORM_TIMEOUT' });
    expect(() => memory.checkOriginal('a')).toThrow(timeout);
    clock.advance(1);
    expect(() => memory.checkOriginal('a')).not.toThrow();
    expect(memory.find('a?size=2')).toBeUndefined();
  });

  test('forgets an original that is purged', () => {
    memory.note('a?size=1', 'a', lost('TRANSFORM_TIMEOUT'));
    memory.purge(
      (key) => key.startsWith('a?'),
      (originKey) => originKey === 'a',
    );
    expect(memory.find('a?size=1')).toBeUndefined();
    expect(() => memory.checkOriginal('a')).not.toThrow();
  });

  test('forgets the oldest when there are too many', () => {
    for (let index = 0; index <= 10_000; index += 1) {
      memory.note(`${index}?`, 'a', new MediaError('UNPROCESSABLE_MEDIA'));
    }
    expect(memory.find('0?')).toBeUndefined();
    expect(memory.find('1?')).toBeDefined();
    expect(memory.find('10000?')).toBeDefined();
  });
});
