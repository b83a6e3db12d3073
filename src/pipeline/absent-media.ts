import { createHmac, randomBytes } from 'node:crypto';
import { MediaError } from '../contract/errors.ts';
import type { MediaRequest } from '../contract/media-request.ts';
import { resultKey } from '../contract/result-key.ts';

/** A request with its `resultKey`. */
export interface KeyedRequest {
  readonly media: MediaRequest;
  readonly key: string;
}

/** Secret of this process, so that no client can store an original at an absent key. */
const secret = randomBytes(32);

/** Keys of absent originals: they have no id. */
const ABSENT_KEY = /^[^/]+\/x[\da-f]{20}\/x[\da-f]{20}\/[\da-f]{24}$/;

/** Scheme of the URLs of absent external media: a secret of this process, so that no client can sign one. */
const ABSENT_SCHEME = `absent-${randomBytes(16).toString('hex')}:`;

/** Cause of an `UNKNOWN_MEDIA` that hides a block: the response must be that of an absent original. */
export class HiddenBlock extends Error {
  override readonly name = 'HiddenBlock';
}

/** Whether an error hides a block. */
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
 * Returns the request for a missing original of the same kind, one for each key, which is served instead of a hidden one.
 * Its key has no id, so that no original can have it, and no directory of the hidden key, so that the origin does not
 * access that directory. External media get a URL for which no site is contacted.
 */
export function createAbsentRequest(media: MediaRequest): KeyedRequest {
  const [root = ''] = media.originKey.split('/');
  const digest = createHmac('sha256', secret).update(media.originKey).digest('hex');
  const name = `x${digest.slice(0, 20)}/x${digest.slice(20, 40)}/${digest.slice(40)}`;
  const url = media.url === undefined ? undefined : `${ABSENT_SCHEME}${name}`;
  const absent = { ...media, originKey: `${root}/${name}`, url };
  return { media: absent, key: resultKey(absent) };
}
