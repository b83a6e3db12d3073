import { createHash } from 'node:crypto';
import type { OriginalIdentity } from './ports.ts';

/** Validators of one state of a response, which are known before anything is rendered. */
export interface Validators {
  /** Strong entity tag, quoted as it stands in the `ETag` header; `undefined` where another site gives none. */
  readonly etag: string | undefined;
  /** When the original last changed; `undefined` where the origin does not tell. */
  readonly lastModified: Date | undefined;
}

/**
 * The validators of a response (contract §4): known as soon as the original's identity is, before any
 * transform.
 *
 * @param key the canonical request's `resultKey`
 * @param release what makes it
 */
export function validatorsOf(
  { etag, lastModified }: OriginalIdentity,
  key: string,
  release: string,
): Validators & { readonly etag: string } {
  const hash = createHash('sha256')
    .update(JSON.stringify([etag, key, release]))
    .digest('base64url');
  // 132 of 256 bits: no two responses ever meet by chance, and the header stays short.
  return { etag: `"${hash.slice(0, 22)}"`, lastModified };
}
