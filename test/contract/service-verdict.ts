import { expect } from 'vitest';
import { parseTarget } from '../../src/contract/media-request.ts';
import { resultKey } from '../../src/contract/result-key.ts';
import type { Verdict } from '../surface/contract-oracle.ts';

/** Result of parsing a target with the service, in the terms of the oracle. */
export function verdictOf(target: string): Verdict {
  const parsed = parseTarget(target);
  switch (parsed.kind) {
    case 'unknown':
      return { kind: 'unknown path' };
    case 'default avatar':
      return { kind: parsed.kind, index: parsed.index };
    case 'invalid': {
      const { code, faults } = parsed.error;
      expect(code).toBe('INVALID_FORM_BODY');
      expect(faults.every(({ message }) => /^Expected .+\.$/s.test(message))).toBe(true);
      return { kind: 'refused', faults: faults.map(({ path }) => path).sort() };
    }
    case 'media': {
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
    }
  }
}

/** Result key of a target, or the index of a default avatar. */
export function keyOf(target: string): string {
  const parsed = parseTarget(target);
  if (parsed.kind === 'media') return resultKey(parsed.request);
  return parsed.kind === 'default avatar' ? parsed.index : expect.fail(parsed.kind);
}
