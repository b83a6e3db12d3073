import { describe, expect, it } from 'vitest';
import { formatCacheStatus } from '../../../src/http/response-headers.ts';
import type { CacheOutcome } from '../../../src/pipeline/cache-outcome.ts';

describe('formatCacheStatus', () => {
  it.each<[CacheOutcome, string]>([
    [{ kind: 'hit' }, 'darkroom; hit'],
    [{ kind: 'miss' }, 'darkroom; fwd=miss'],
    [{ kind: 'miss', stored: true }, 'darkroom; fwd=miss; stored'],
    [{ kind: 'miss', stored: false, collapsed: false }, 'darkroom; fwd=miss'],
    [{ kind: 'miss', collapsed: true }, 'darkroom; fwd=miss; collapsed'],
    [{ kind: 'miss', stored: true, collapsed: true }, 'darkroom; fwd=miss; stored; collapsed'],
    [{ kind: 'stale', originStatus: 304 }, 'darkroom; fwd=stale; fwd-status=304'],
    [
      { kind: 'stale', originStatus: 200, stored: true },
      'darkroom; fwd=stale; fwd-status=200; stored',
    ],
    [{ kind: 'bypass' }, 'darkroom; fwd=bypass'],
    [{ kind: 'bypass', originStatus: 206 }, 'darkroom; fwd=bypass; fwd-status=206'],
  ])('%j', (outcome, expected) => {
    expect(formatCacheStatus(outcome)).toBe(expected);
  });
});
