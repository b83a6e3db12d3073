import { createHash } from 'node:crypto';
import type { ResultAddress } from '../ports.ts';

/** Hexadecimal digits of each part of a name: 64 bits, among the renderings of one original. */
const DIGITS = 16;

/**
 * Path of a rendering in a store: the origin key as a folder, in it a name of the request and the state
 * of original and pipeline. So one prefix finds the renderings of a user, of an original (`originKey/`)
 * or of one request (`resultPathPrefix`), and a changed original or an upgrade finds none.
 */
export function resultPath({ originKey, key, originalEtag, release }: ResultAddress): string {
  return `${resultPathPrefix(originKey, key)}${hash(JSON.stringify([originalEtag, release]))}`;
}

/** Returns the common beginning of the paths of one request, in whatever state of its original. */
export function resultPathPrefix(originKey: string, key: string): string {
  return `${originKey}/${hash(key)}-`;
}

/** Whether a path may be that of a rendering, whatever stands before it. */
export function isResultPath(path: string): boolean {
  return /\/[\da-f]{16}-[\da-f]{16}$/.test(path);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, DIGITS);
}
