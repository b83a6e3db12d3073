import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findUnusedIndex } from '../../../src/formats/gif/gif-frames.ts';
import { compressIndices } from '../../support/images/draw-gif.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';

// What browsers show of the corpus' GIFs, and the service too, is told by the goldens animation/unpainted-*
// and animation/opaque-*.
test('the unused index of a frame of a GIF is one that no pixel has, if there is one', () => {
  const every = [...Array(256).keys()];
  const colours = fc.uniqueArray(fc.nat(255), { minLength: 1, maxLength: 256 });
  fc.assert(
    fc.property(fc.nat(), fc.nat(30_000), colours, fc.boolean(), (seed, count, some, clears) => {
      const random = createSeededRandom(`${seed}`);
      // Few colours in turn with all of them repeat themselves enough to be packed.
      const few = some.slice(0, 4);
      const pixels = Array.from({ length: count + 1 }, () =>
        random.pick(random.integer(2) === 0 ? some : few),
      );
      const index = findUnusedIndex(compressIndices(pixels, 8, { clears }), 0);
      const used = new Set(pixels);
      expect(index).toBe(every.find((other) => !used.has(other)));
    }),
    {
      examples: [
        [1, 60_000, every, true],
        [1, 60_000, every, false],
      ],
    },
  );
});

test.each([2, 4, 7])('it is the largest possible where a root code has %i bits', (rootBits) => {
  expect(findUnusedIndex(compressIndices([0, 1, 2, 3], rootBits), 0)).toBe(255);
});
