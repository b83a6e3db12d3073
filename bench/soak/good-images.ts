import { createHash } from 'node:crypto';
import { copyKey, RESERVED_COPY } from './originals.ts';

/** One of each way through the service; all of them right at the start, or nothing is worth measuring. */
const GOOD_PATHS = [
  '/avatars/1/ab12.webp?size=256',
  '/icons/1/ab12.png?size=64',
  '/splashes/1/ab12.jpg?size=480&quality=low',
  '/avatars/8/op56.webp?quality=lossless',
  '/avatars/2/a_cd34.gif?size=64',
  '/stickers/1474444444444444445.webp',
  '/emojis/1473333333333333334.webp?size=48&animated=true',
  '/attachments/1/1/country-lane.jpg?width=200&height=200&format=webp',
  '/attachments/1/14/romeo.txt',
];

/**
 * Fetches the good images, and gives the digest of each, or what came instead.
 *
 * @param from `samples`, or `copies`: the same bytes under ids that have not been asked for yet, so that
 *   they are rendered anew
 */
export async function fetchGoodImages(
  origin: string,
  from: 'samples' | 'copies',
): Promise<readonly string[]> {
  const digests: string[] = [];
  for (const path of GOOD_PATHS) {
    const target = from === 'samples' ? path : copyKey(path, RESERVED_COPY);
    const response = await fetch(origin + target);
    const body = Buffer.from(await response.arrayBuffer());
    const digest = createHash('sha256').update(body).digest('hex');
    digests.push(response.ok ? digest : `status ${response.status}`);
  }
  return digests;
}

/** The good images that are not, or no longer, what they were. */
export function findChanged(before: readonly string[], after: readonly string[]): string[] {
  return GOOD_PATHS.filter(
    (_, index) => before[index]?.startsWith('status') || before[index] !== after[index],
  );
}
