import { createHmac, randomBytes } from 'node:crypto';
import { type MediaRequest, resultKey } from '../contract/media-request.ts';

/** A request with its `resultKey`. */
export interface KeyedRequest {
  readonly media: MediaRequest;
  readonly key: string;
}

/** Secret of this process, so that nobody can store an original at an absent key. */
const secret = randomBytes(32);

/**
 * Returns the request for a missing original of the same kind, one for each key, which is served in the place of a hidden
 * one. Its key has no id, so no original can ever have it, and no folder of the key that it stands for, so that the
 * origin does not touch that folder.
 */
export function absentOf(media: MediaRequest): KeyedRequest {
  const [root = ''] = media.originKey.split('/');
  const digest = createHmac('sha256', secret).update(media.originKey).digest('hex');
  const name = `x${digest.slice(0, 20)}/x${digest.slice(20, 40)}/${digest.slice(40)}`;
  const absent = { ...media, originKey: `${root}/${name}` };
  return { media: absent, key: resultKey(absent) };
}
