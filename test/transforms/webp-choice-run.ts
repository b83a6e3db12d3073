import { expect, test } from 'vitest';
import { shareTestApp } from '../support/test-app.ts';
import type { NamedOriginal } from './gif-alpha-run.ts';

/**
 * Tests that `high` and `low` of a WebP are no larger than `lossless`, unless they are lossless themselves, which
 * may be worth some bytes where chroma would be seen.
 */
export function describeWebpChoice(
  originals: readonly NamedOriginal[],
  sizes: readonly number[],
): void {
  const app = shareTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '60000' } });

  test.each(originals)('$name', async ({ read }) => {
    const original = read();
    const ask = async (size: number, quality: string): Promise<Buffer | undefined> => {
      const path = `/avatars/{id}/x.webp?size=${size}&quality=${quality}&animated=true`;
      const { statusCode, rawPayload } = await app.serve(original, path);
      return statusCode === 200 ? rawPayload : undefined;
    };
    for (const size of sizes) {
      const lossless = await ask(size, 'lossless');
      for (const quality of ['high', 'low']) {
        const given = await ask(size, quality);
        if (lossless === undefined || given === undefined) return; // refused: other tests say when
        if (!given.includes('VP8 ')) continue; // lossless itself
        expect(given.length, `${quality} at ${size}`).toBeLessThanOrEqual(lossless.length);
      }
    }
  });
}
