import { expect, test } from 'vitest';
import { type DecodedImage, decodeImage } from '../support/images/image-comparison.ts';
import { readGifImages } from '../support/images/read-gif.ts';
import { shareTestApp } from '../support/test-app.ts';

/** An original, by the name of its test. */
export interface NamedOriginal {
  readonly name: string;
  readonly read: () => Buffer;
}

/** At its own size, if that is no larger, and small. */
const SIZES_PX = [4096, 44];

const WORDS = { clear: 0, white: 0xff_ff_ff_ff, black: 0xff_00_00_00 } as const;

/**
 * Tests that low GIFs of originals are transparent, white and black where these are, pixel by pixel beside the
 * lossless WebP of the same request; and that no colour is named that they do not have.
 */
export function describeGifAlpha(originals: readonly NamedOriginal[]): void {
  const app = shareTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '60000' } });

  const ask = async (original: Buffer, way: string): Promise<Buffer | undefined> => {
    const { statusCode, rawPayload } = await app.serve(original, `/avatars/{id}/x.${way}`);
    return statusCode === 200 ? rawPayload : undefined;
  };

  test.each(originals)('$name', async ({ read }) => {
    const original = read();
    for (const size of SIZES_PX) {
      const exact = await ask(original, `webp?size=${size}&quality=lossless&animated=true`);
      const gif = await ask(original, `gif?size=${size}&quality=low`);
      if (exact === undefined || gif === undefined) return; // refused: other tests say when
      if (gif.equals(original)) continue; // which was smaller
      expect(count(await decodeImage(gif), await decodeImage(exact))).toEqual(noneMoved);
      const unknown = readGifImages(gif).filter(
        ({ colours, indices, transparentIndex = 0 }) =>
          transparentIndex >= colours || indices.some((index) => index >= colours),
      );
      expect(unknown).toEqual([]);
    }
  });
}

const noneMoved = { isAlike: true, clear: 0, white: 0, black: 0 };

/** How many pixels are not what they should be: half of an opacity is enough to be seen in a GIF. */
function count(gif: DecodedImage, exact: DecodedImage): typeof noneMoved {
  const moved = { ...noneMoved, isAlike: gif.frames.length === exact.frames.length };
  for (const [index, frame] of exact.frames.entries()) {
    const wanted = toWords(frame);
    const shown = toWords(gif.frames[index] ?? new Uint8Array());
    moved.isAlike &&= wanted.length === shown.length;
    for (const [at, word] of wanted.entries()) {
      if (word === shown[at]) continue;
      for (const name of ['clear', 'white', 'black'] as const) {
        // The other way round, pixels may become white or black, but not transparent.
        const isLost = word === WORDS[name] || (name === 'clear' && shown[at] === WORDS.clear);
        if (isLost) moved[name] += 1;
      }
    }
  }
  return moved;
}

function toWords(rgba: Uint8Array): Uint32Array {
  const { buffer, byteOffset, byteLength } = Uint8Array.from(rgba);
  const words = new Uint32Array(buffer, byteOffset, byteLength / 4);
  return words.map((word) => (word >>> 24 < 128 ? WORDS.clear : (word | 0xff_00_00_00) >>> 0));
}
