import { createHmac, randomBytes } from 'node:crypto';
import { MediaError } from '../contract/errors.ts';
import type { MediaRequest } from '../contract/media-request.ts';
import { resultKey } from '../contract/result-key.ts';

export interface KeyedRequest {
  readonly media: MediaRequest;
  readonly cacheKey: string;
}

/** Secret of this process: no client can predict an absent key and store an original there. */
const secret = randomBytes(32);

const ABSENT_KEY = /^[^/]+\/x[\da-f]{20}\/x[\da-f]{20}\/[\da-f]{24}$/;

/** Scheme of URLs of absent external media: a secret, so that no client can sign one. */
const ABSENT_SCHEME = `absent-${randomBytes(16).toString('hex')}:`;

/** Cause of an `UNKNOWN_MEDIA` that hides a block: the response must equal that of a missing original. */
export class HiddenBlock extends Error {
  override readonly name = 'HiddenBlock';
}

export function isHidden(error: unknown): boolean {
  return error instanceof MediaError && error.cause instanceof HiddenBlock;
}

export function isAbsentKey(originKey: string): boolean {
  return ABSENT_KEY.test(originKey);
}

export function isAbsentUrl(url: string): boolean {
  return url.startsWith(ABSENT_SCHEME);
}

/**
 * Returns the request for a missing original that is served instead of a hidden one: the same for each key and of the
 * same kind. Its key has no id, so no original can have it, and its directory is not that of the hidden key.
 */
export function createAbsentRequest(media: MediaRequest): KeyedRequest {
  const [root = ''] = media.originKey.split('/');
  const digest = createHmac('sha256', secret).update(media.originKey).digest('hex');
  const name = `x${digest.slice(0, 20)}/x${digest.slice(20, 40)}/${digest.slice(40)}`;
  const url = media.url === undefined ? undefined : `${ABSENT_SCHEME}${name}`;
  const absent = { ...media, originKey: `${root}/${name}`, url };
  return { media: absent, cacheKey: resultKey(absent) };
}
