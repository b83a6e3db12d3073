/**
 * Mutations of small real files, thousands for each format, through the real service.
 *
 *     HOSTILE_MUTATIONS=5000   how many for each format
 *     HOSTILE_SEED=1           which ones
 *     HOSTILE_WRITE=gif:1234   makes no request, but writes the one with this number to
 *                              test-report/hostile
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SourceFormat } from '../../src/contract/image-formats.ts';
import { keepOriginal } from './hostile-report.ts';
import { type HostileRun, startHostileRun } from './hostile-run.ts';
import { type Mutation, Mutator } from './mutations/mutation.ts';
import { partCodecs } from './mutations/part-codecs.ts';
import { hasLostWorker } from './service-log.ts';
import { wasRendered } from './verdict.ts';

const FORMATS = Object.keys(partCodecs) as readonly SourceFormat[];
const { HOSTILE_SEED: seed = '1', HOSTILE_MUTATIONS, HOSTILE_WRITE: wanted } = process.env;
const count = Number(HOSTILE_MUTATIONS ?? 5_000);

/** Few enough that no request is refused for the load, and enough to keep all workers busy. */
const CONNECTIONS = 4;
/** After so many, good images are asked for. */
const BATCH = 500;
/** What is kept in the report even if it was served. */
const NOTEWORTHY_MS = 1_000;

const mutator = new Mutator(seed);

/** @param name format and number: `gif:1234` */
function createByName(name: string): Mutation {
  const [format, index] = name.split(':') as [SourceFormat, string];
  return mutator.create(format, Number(index));
}

describe.runIf(wanted === undefined)(`seed ${seed}`, () => {
  let run: HostileRun;
  /** Names of the mutations by their targets. */
  const names = new Map<string, string>();
  /** How many have got as far as a decoder. */
  let rendered = 0;
  beforeAll(async () => {
    run = await startHostileRun('mutations');
  });
  afterAll(() => run.stop());

  const shootNext = async (format: SourceFormat, index: number): Promise<number> => {
    const { bytes, way } = mutator.create(format, index);
    const name = `${format}:${index}`;
    const target = way.target(run.nextId());
    names.set(target, name);
    const response = await run.shoot(name, bytes, target);
    if (response.tookMs > NOTEWORTHY_MS) run.report.add({ name, way: way.name, target, response });
    if (wasRendered(response)) rendered += 1;
    return response.status;
  };

  test.each(FORMATS)(
    `${count} mutations of %s`,
    async (format) => {
      expect(mutator.countOriginals(format)).toBeGreaterThan(5);
      const startedMs = performance.now();
      rendered = 0;
      const statuses: number[] = [];
      for (let first = 0; first < count; first += BATCH) {
        let next = first;
        const end = Math.min(first + BATCH, count);
        const drain = async (): Promise<void> => {
          while (next < end) statuses.push(await shootNext(format, next++));
        };
        await Promise.all(Array.from({ length: CONNECTIONS }, drain));
        await run.expectGoodImages();
      }
      const seconds = (performance.now() - startedMs) / 1000;
      const countOf = (status: number): number => statuses.filter((each) => each === status).length;
      const table = [...new Set(statuses)].sort().map((status) => `${status}: ${countOf(status)}`);
      const pace = `${(count / seconds).toFixed(0)} a second`;
      run.report.note(`${format}: ${table.join(', ')}; ${rendered} seen by a decoder; ${pace}`);
      expect(statuses).toHaveLength(count);
      // Neither is everything refused before it is decoded, nor is nothing hurt.
      expect(Math.min(countOf(200), countOf(422))).toBeGreaterThan(count / 50);
      expect(rendered).toBeGreaterThan(count / 4);
    },
    3_600_000,
  );

  test('the service is unharmed', () => {
    for (const [target, refusal] of run.log.refusals) {
      if (!hasLostWorker(refusal) && refusal.code !== 'TRANSFORM_TIMEOUT') continue;
      const name = names.get(target);
      if (name === undefined) continue; // a good image, which has a test of its own
      const { bytes } = createByName(name);
      keepOriginal('mutations', name, target, bytes, [refusal.reason]);
      run.report.note(`${name}, ${target}: ${refusal.code}, ${refusal.reason}`);
    }
    run.expectUnharmed();
  });
});

// No test that is skipped where nothing is wanted.
if (wanted !== undefined) {
  test('a mutation is written out', () => {
    const { bytes, way } = createByName(wanted);
    const folder = keepOriginal(`seed-${seed}`, wanted, way.target(1), bytes, []);
    process.stdout.write(`${folder}: ${way.target(1)}\n`);
  });
}
