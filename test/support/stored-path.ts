import { hash } from 'node:crypto';
import type { ResultAddress } from '../../src/contract/result-key.ts';

/** Path of a rendering in every store, computed independently: a changed path would lose all stored renderings. */
export function storedPath({ originKey, cacheKey, originalEtag, release }: ResultAddress): string {
  return `${storedPathPrefix(originKey, cacheKey)}${digestOf(JSON.stringify([originalEtag, release]))}`;
}

/** Common prefix of the paths of one request, for all versions of its original. */
export function storedPathPrefix(originKey: string, cacheKey: string): string {
  return `${originKey}/${digestOf(cacheKey)}-`;
}

const digestOf = (text: string): string => hash('sha256', text).slice(0, 16);
