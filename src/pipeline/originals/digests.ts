import { createHash } from 'node:crypto';
import type { Opened } from '../ports.ts';
import { type Backend, brokenError } from './backend.ts';
import { isStream, lengthOf } from './open-body.ts';
import { passBody } from './pass-body.ts';

/**
 * Returns a name of the state of an original that is not held whole: the tag of the storage, or what another site tells.
 * A site that tells nothing but a length is judged by that.
 */
export function stateOf({ isExternal }: Backend, opened: Opened): string {
  const { etag = '', validators, sizeBytes } = opened;
  return isExternal
    ? JSON.stringify([validators?.etag, validators?.lastModified, sizeBytes])
    : etag;
}

/**
 * Hashes an opened original as its bytes come.
 *
 * @throws MediaError as `passBody` does
 */
export async function hashBody(backend: Backend, opened: Opened): Promise<string> {
  const { body } = opened;
  const rest = isStream(body) ? body : undefined;
  const prefix = body instanceof Uint8Array ? body : new Uint8Array();
  const hash = createHash('sha256');
  try {
    for await (const chunk of passBody(backend, prefix, rest, lengthOf(opened))) hash.update(chunk);
  } catch (error) {
    throw brokenError(backend, error);
  }
  return hash.digest('hex');
}

/** Whether the identity of a state is the digest of its bytes; that of another site's video is a `stateOf`. */
export function isDigest({ source }: Backend, etag: string): boolean {
  return source.identity === 'digest' && !etag.startsWith('[');
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
