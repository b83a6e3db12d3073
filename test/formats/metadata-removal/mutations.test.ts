import { describe, expect, test } from 'vitest';
import {
  createMetadataCleaner,
  MetadataRemovalError,
} from '../../../src/formats/metadata-removal/cleaner.ts';
import { heifTables } from '../../hostile/bombs/heif-tables.ts';
import { largestTables } from '../../hostile/bombs/largest-tables.ts';
import {
  createMutation,
  readImageKinds,
  readVideoKinds,
} from '../../hostile/mutations/mutation.ts';
import { withStepCounter } from '../../support/count-steps.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';
import { atScale } from '../../support/test-scale.ts';
import { join, u32be } from '../containers.ts';
import { clean } from './clean.ts';
import { createMovie } from './movies.ts';

const MUTATIONS = atScale(60, 1_500);

/** Returns the cleaned bytes, or the message of the only error that a cleaner may throw. */
function outcomeOf(file: Buffer, chunkSizes?: readonly number[]): Buffer | string {
  try {
    return clean(file, chunkSizes).bytes;
  } catch (error) {
    if (error instanceof MetadataRemovalError) return error.message;
    throw error;
  }
}

describe('a mutation', () => {
  const kinds = [...readImageKinds(), ...readVideoKinds()];
  test.each(kinds.map((kind) => [kind.name, kind] as const))(
    'of a file of the kind %s is rejected, or cleaned completely, with the same result for any chunks',
    (_, kind) => {
      for (let index = 0; index < MUTATIONS; index += 1) {
        const { bytes } = createMutation('metadata removal', kind, index);
        const file = Buffer.from(bytes);
        if (createMetadataCleaner(file) === undefined) continue;
        const outcome = outcomeOf(file);
        const random = createSeededRandom(`${index}`);
        const sizes = Array.from({ length: 7 }, () => 1 + random.integer(random.pick([4, 5_000])));
        expectSame(outcomeOf(file, sizes), outcome);
        if (typeof outcome === 'string') continue;
        const again = clean(outcome);
        expect(again.hasRemoved && describeChange(outcome, again.bytes)).toBe(false);
      }
    },
  );
});

function expectSame(one: Buffer | string, other: Buffer | string): void {
  if (typeof one === 'string' || typeof other === 'string') expect(one).toBe(other);
  else expect(one.equals(other)).toBe(true);
}

function describeChange(one: Buffer, other: Buffer): string {
  const at = one.findIndex((byte, index) => byte !== other[index]);
  return `at ${at}: ${one.toString('hex', at, at + 8)} became ${other.toString('hex', at, at + 8)}`;
}

/** Maximum steps of each file of the tables, whose lengths differ. */
const MAX_STEPS = 25_000_000;

test.each(Object.entries({ ...largestTables, ...heifTables }))(
  'cleans a file whose counts multiply in a limited number of steps: %s',
  async (_, make) => {
    const file = make();
    const load = () => import('../../../src/formats/metadata-removal/cleaner.ts');
    await withStepCounter(load, (modules, countSteps) => {
      const steps = countSteps(() => {
        const cleaner = modules.createMetadataCleaner(file);
        try {
          cleaner?.write(file);
          cleaner?.end();
        } catch (error) {
          expect(error).toBeInstanceOf(modules.MetadataRemovalError);
        }
      });
      expect(steps).toBeLessThan(MAX_STEPS);
    });
  },
);

test('uses no more memory for a large video than for a small one', () => {
  const track = { handler: 'vide', chunks: [[Buffer.from('picture')]] };
  const dataHeader = (payload: Buffer) => join(u32be(0), 'mdat', payload);
  const movie = createMovie([track], { dataHeader });
  const cleaner = createMetadataCleaner(movie) ?? expect.fail('format not supported');
  const chunk = Buffer.alloc(65_536, 1);
  const lengthOf = (pieces: readonly Uint8Array[]): number =>
    pieces.reduce((sum, { length }) => sum + length, 0);
  let written = lengthOf(cleaner.write(movie));
  const before = process.memoryUsage().arrayBuffers;
  let peak = 0;
  for (let chunks = 0; chunks < 4_800; chunks += 1) {
    written += lengthOf(cleaner.write(chunk));
    peak = Math.max(peak, process.memoryUsage().arrayBuffers - before);
  }
  expect(written).toBe(movie.length + 4_800 * chunk.length);
  expect(peak).toBeLessThan(8 * 2 ** 20);
});
