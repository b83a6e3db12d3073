/** What is taken apart and put together unchanged is the same image; mutations depend on it. */
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { corpusFile, corpusFiles } from '../formats/facts-of.ts';
import { Mutator } from './mutations/mutation.ts';
import { type PartCodec, partCodecs } from './mutations/part-codecs.ts';

const files = {
  png: ['png-8', 'png-interlaced', 'png-palette', 'apng'],
  jpeg: ['jpeg-progressive', 'jpeg-sampling', 'jpeg-gps'],
  webp: ['webp-animated', 'webp-lossy', 'webp-alpha'],
  gif: ['gif-animated', 'gif-static', 'gif-delays'],
  avif: ['avif'],
} as const;

/** Files of some categories that a codec can take apart. */
function readable(categories: readonly string[], codec: PartCodec): Buffer[] {
  return corpusFiles(...categories)
    .map(corpusFile)
    .filter((bytes) => {
      try {
        return codec.parse(bytes).length > 1;
      } catch {
        return false;
      }
    });
}

describe.each(Object.entries(files))('%s', (format, categories) => {
  const codecs = partCodecs[format as keyof typeof files];

  test.each(codecs.map((codec, index) => [index, codec] as const))('codec %i', async (_, codec) => {
    const originals = readable(categories, codec);
    expect(originals.length).toBeGreaterThan(4);
    for (const original of originals) {
      const again = codec.format(codec.parse(original));
      const { isClean: _before, ...facts } = readImageFacts(original) ?? { isClean: false };
      expect(readImageFacts(again)).toMatchObject(facts);
      const pixels = (bytes: Buffer): Promise<Buffer> =>
        sharp(bytes, { failOn: 'error' }).raw().toBuffer();
      expect((await pixels(again)).equals(await pixels(original))).toBe(true);
    }
  });

  test('the same seed and number give the same mutation, others another', () => {
    const key = format as keyof typeof files;
    const [one, two, other] = ['1', '1', '2'].map((seed) => new Mutator(seed).create(key, 7));
    expect(one?.bytes.equals(two?.bytes ?? Buffer.alloc(0))).toBe(true);
    expect(one?.way).toBe(two?.way);
    expect(one?.bytes.equals(other?.bytes ?? Buffer.alloc(0))).toBe(false);
  });
});
