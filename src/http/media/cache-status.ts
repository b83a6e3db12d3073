import type { CacheOutcome } from '../../pipeline/cache-outcome.ts';

/**
 * The `Cache-Status` header of an answer (RFC 9211 §2), for the cache named `darkroom`:
 * `darkroom; hit`, or `darkroom; fwd=miss; stored`, with `fwd-status`, `collapsed` and `detail` where
 * they hold. A false parameter is left out, which means the same (§2.3, §2.5).
 */
export function formatCacheStatus(outcome: CacheOutcome): string {
  return ['darkroom', ...parametersOf(outcome)].join('; ');
}

function parametersOf(outcome: CacheOutcome): readonly string[] {
  const detail = outcome.kind !== 'bypass' && outcome.detail ? [`detail=${outcome.detail}`] : [];
  if (outcome.kind === 'hit') return ['hit', ...detail];

  const parameters = [`fwd=${outcome.kind}`];
  if (outcome.originStatus !== undefined) parameters.push(`fwd-status=${outcome.originStatus}`);
  if (outcome.kind !== 'bypass' && outcome.stored) parameters.push('stored');
  if (outcome.collapsed) parameters.push('collapsed');
  return [...parameters, ...detail];
}
