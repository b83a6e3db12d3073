import { expect } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { parseTarget, resultKey } from '../../src/contract/media-request.ts';
import type { Verdict } from '../surface/contract-oracle.ts';

/** What the service makes of a target, in the oracle's words. */
export function verdictOf(target: string): Verdict {
  try {
    const parsed = parseTarget(target);
    if (parsed.kind === 'default avatar') return parsed;
    const {
      resource: _,
      filename,
      isAnimated,
      isPassthrough,
      highFor,
      ...request
    } = parsed.request;
    const quality = highFor === undefined ? request.quality : ('' as const);
    const canonical = { ...request, quality, animated: isAnimated, passthrough: isPassthrough };
    return { kind: 'media', canonical, ...(filename !== undefined && { filename }) };
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    if (error.code === 'NOT_FOUND' && error.faults.length === 0) return { kind: 'unknown path' };
    expect(error.code).toBe('INVALID_FORM_BODY');
    expect(error.faults.every(({ message }) => /^Expected .+\.$/s.test(message))).toBe(true);
    return { kind: 'refused', faults: error.faults.map(({ path }) => path).sort() };
  }
}

/** The key of a target's result; of a default avatar, which has none, its index. */
export function keyOf(target: string): string {
  const parsed = parseTarget(target);
  return parsed.kind === 'media' ? resultKey(parsed.request) : parsed.index;
}
