/** Paths of the upload relay, `/v1/relay/{key}` (contract §10). */

import type { RequestFault } from '../errors.ts';
import { decodeSegment } from '../media-path.ts';
import { isOriginKey, unmarkedKeyOf } from '../origin-key.ts';

export const RELAY_PREFIX = '/v1/relay/';

/** Whether a path belongs to the relay: the prefix, and something behind it. */
export function isRelayPath(rawPath: string): boolean {
  return rawPath.startsWith(RELAY_PREFIX) && rawPath.length > RELAY_PREFIX.length;
}

/**
 * Returns the key that a path names: its segments, each decoded once.
 *
 * @param rawPath of the relay, as it came
 * @returns `undefined` if a segment is not valid percent-encoded UTF-8
 */
export function readRelayKey(rawPath: string): string | undefined {
  const segments = rawPath.slice(RELAY_PREFIX.length).split('/').map(decodeSegment);
  return segments.includes(undefined) ? undefined : segments.join('/');
}

/** Returns the faults of a path's key; empty if originals can have this key. */
export function findRelayKeyFaults(rawPath: string): readonly RequestFault[] {
  const key = readRelayKey(rawPath);
  if (key === undefined) return [fault('Expected valid percent-encoded UTF-8.')];
  // An encoded slash is part of a segment, and no segment of a key contains one.
  const hasEncodedSlash =
    key.split('/').length !== rawPath.slice(RELAY_PREFIX.length).split('/').length;
  if (hasEncodedSlash || !isOriginKey(key)) {
    return [fault('Expected the key of an original, such as avatars/1/ab12.')];
  }
  const meant = unmarkedKeyOf(key);
  if (meant === undefined) return [];
  return [fault(`Expected the key without the a_ of its hash: ${meant}`)];
}

/** Formats the path of an upload, with its capability. */
export function formatRelayPath(key: string, capability: string): string {
  return `${RELAY_PREFIX}${key.split('/').map(encodeURIComponent).join('/')}?t=${capability}`;
}

function fault(message: string): RequestFault {
  return { path: 'key', message };
}
