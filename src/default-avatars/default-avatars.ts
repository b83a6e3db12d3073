import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { DEFAULT_AVATAR_COUNT } from '../contract/resources.ts';

/** Default avatar: a PNG of 256 × 256 pixels. */
export interface DefaultAvatar {
  readonly body: Buffer;
  /** Strong entity tag of the bytes, quoted. */
  readonly etag: string;
}

/**
 * Loads the default avatars of this directory, by index.
 *
 * @throws Error if one is missing: the build is incomplete
 */
export function loadDefaultAvatars(): Promise<readonly DefaultAvatar[]> {
  return Promise.all(
    Array.from({ length: DEFAULT_AVATAR_COUNT }, async (_, index) => {
      const body = await readFile(new URL(`${index}.png`, import.meta.url));
      const hash = createHash('sha256').update(body).digest('base64url');
      return { body, etag: `"${hash.slice(0, 22)}"` };
    }),
  );
}
