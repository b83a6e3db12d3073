import { hash } from 'node:crypto';
import type { ResultAddress } from '../../src/contract/result-key.ts';

/** The path of a rendering in every store, worked out once more: what older processes have written is found by it. */
export function storedPath({ originKey, key, originalEtag, release }: ResultAddress): string {
  return `${storedPathPrefix(originKey, key)}${digestOf(JSON.stringify([originalEtag, release]))}`;
}

/** What the paths of one request begin with, in whatever state of its original. */
export function storedPathPrefix(originKey: string, key: string): string {
  return `${originKey}/${digestOf(key)}-`;
}

const digestOf = (text: string): string => hash('sha256', text).slice(0, 16);
