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
import { FireReport } from './fire-report.ts';
import { HostileRun } from './hostile-run.ts';
import { Mutator } from './mutations/mutation.ts';

const FORMATS = ['jpeg', 'png', 'webp', 'gif', 'avif'] as const satisfies readonly SourceFormat[];
const { HOSTILE_SEED: seed = '1', HOSTILE_MUTATIONS, HOSTILE_WRITE: wanted } = process.env;
const count = Number(HOSTILE_MUTATIONS ?? 5_000);

/** Few enough that nobody is turned away, and enough to keep all workers busy. */
const CONNECTIONS = 4;
/** After so many, good images are asked for. */
const BATCH = 500;
/** What is kept in the report even if it was served. */
const NOTEWORTHY_MS = 1_000;

const mutator = new Mutator(seed);

describe.skipIf(wanted !== undefined)(`seed ${seed}`, () => {
  let run: HostileRun;
  /** Names of the mutations by their targets. */
  const names = new Map<string, string>();
  /** How many have got as far as a decoder. */
  let rendered = 0;
  beforeAll(async () => {
    run = await HostileRun.start('mutations');
  });
  afterAll(() => run.stop());

  const shootNext = async (format: SourceFormat, index: number): Promise<number> => {
    const { bytes, way } = mutator.create(format, index);
    const name = `${format}:${index}`;
    const target = way.target(run.nextId());
    names.set(target, name);
    const shot = await run.shoot(name, bytes, target);
    if (shot.answer.tookMs > NOTEWORTHY_MS) run.report.add({ ...shot, name, way: way.name });
    if (/\brender\b/.test(String(shot.answer.headers['server-timing']))) rendered += 1;
    return shot.answer.status;
  };

  test.each(FORMATS)(
    `${count} mutations of %s`,
    async (format) => {
      expect(mutator.countOriginals(format)).toBeGreaterThan(5);
      const startedMs = performance.now();
      rendered = 0;
      const statuses: number[] = [];
      for (let first = 0; first < count; first += BATCH) {
        const indices = Array.from(
          { length: Math.min(BATCH, count - first) },
          (_, at) => first + at,
        );
        const next = indices.values();
        const drain = async (): Promise<void> => {
          for (const index of next) statuses.push(await shootNext(format, index));
        };
        await Promise.all(Array.from({ length: CONNECTIONS }, drain));
        await run.expectGoodImages();
      }
      const seconds = (performance.now() - startedMs) / 1000;
      const countOf = (status: number): number => statuses.filter((each) => each === status).length;
      const table = [...new Set(statuses)].sort().map((status) => `${status}: ${countOf(status)}`);
      run.report.note(
        `${format}: ${table.join(', ')}; ${rendered} seen by a decoder; ${(count / seconds).toFixed(0)} a second of ${mutator.countOriginals(format)} originals`,
      );
      expect(statuses).toHaveLength(count);
      // Neither everything refused at the door, nor nothing hurt.
      for (const status of [200, 422]) {
        expect(countOf(status)).toBeGreaterThan(count / 50);
      }
      expect(rendered).toBeGreaterThan(count / 4);
    },
    3_600_000,
  );

  test('the service is unharmed', () => {
    for (const { target, refusal } of run.fire.log.costly) {
      const name = names.get(target) ?? '';
      const [format, index] = name.split(':') as [SourceFormat, string];
      const { bytes } = mutator.create(format, Number(index));
      run.report.keep(name, target, bytes, [refusal.reason]);
      run.report.note(`${name}, ${target}: ${refusal.code}, ${refusal.reason}`);
    }
    run.expectUnharmed();
  });
});

test.runIf(wanted !== undefined)('a mutation is written out', () => {
  const [format, index] = (wanted ?? '').split(':') as [SourceFormat, string];
  expect(FORMATS).toContain(format);
  const { bytes, way } = mutator.create(format, Number(index));
  const folder = new FireReport(`seed-${seed}`).keep(
    `${format}-${index}`,
    way.target(1),
    bytes,
    [],
  );
  process.stdout.write(`${folder}: ${way.target(1)}\n`);
  expect(mutator.create(format, Number(index)).bytes.equals(bytes)).toBe(true);
});
