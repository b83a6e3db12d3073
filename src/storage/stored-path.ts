import type { ResultAddress } from '../pipeline/ports.ts';
import { resultPath } from '../pipeline/results/result-path.ts';

/**
 * The path of a rendering below a store: `resultPath`, checked once more. Its segments were validated
 * one by one; that none of them leads up or nowhere is what the stores rely on themselves.
 *
 * @throws Error for a path that is not written straight
 */
export function storedPathOf(address: ResultAddress): string {
  const path = resultPath(address);
  if (!path.split('/').every(isStraight)) throw new Error(`${path} is not a path of a rendering.`);
  return path;
}

/**
 * Checks the beginning of paths that a removal is given: any text that paths may begin with. Its last
 * segment may be a part of one, so `a/.` is the beginning of `a/.htaccess/…`; `a/..` is refused all the
 * same, though a file `..name` may exist.
 *
 * @throws Error for an empty one, and one that is not written straight
 */
export function checkPathPrefix(prefix: string): void {
  const segments = prefix.split('/');
  const last = segments.pop();
  if (prefix === '' || !segments.every(isStraight) || last === '..' || last?.includes('\0')) {
    throw new Error(`Expected the beginning of a path for a removal but received "${prefix}".`);
  }
}

function isStraight(segment: string): boolean {
  return segment !== '' && segment !== '.' && segment !== '..' && !segment.includes('\0');
}
