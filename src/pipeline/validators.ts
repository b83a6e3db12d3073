import { createHash } from 'node:crypto';
import { PIPELINE_RELEASE } from '../contract/pipeline-release.ts';

/** What tells one state of an answer from another; known before anything is rendered. */
export interface Validators {
  /** Strong entity tag, quoted as it stands in the `ETag` header. */
  readonly etag: string;
  /** When the original last changed; `undefined` where the origin does not tell. */
  readonly lastModified: Date | undefined;
}

/**
 * The strong entity tag of an answer (spec §4): known as soon as the original's identity is, before
 * any transform.
 *
 * @param originalEtag `OriginObject.etag`
 * @param key the canonical request's `resultKey`
 * @returns quoted, as it stands in the header
 */
export function formatEtag(originalEtag: string, key: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([originalEtag, key, PIPELINE_RELEASE]))
    .digest('base64url');
  // 132 of 256 bits: no two answers ever meet by chance, and the header stays short.
  return `"${hash.slice(0, 22)}"`;
}
