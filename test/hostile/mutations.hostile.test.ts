/**
 * Mutations of small real files through the real service.
 *
 *     HOSTILE_MUTATIONS=5000   number for each format
 *     HOSTILE_VIDEOS=200       number for each video
 *     HOSTILE_SEED=1           seed
 */
import { afterAll, describe, expect, test } from 'vitest';
import { hasFfmpeg } from '../support/videos.ts';
import { keepOriginal, shareHostileRun } from './hostile-run.ts';
import {
  createMutation,
  type MutatedKind,
  readImageKinds,
  readVideoKinds,
} from './mutations/mutation.ts';
import { wasRendered } from './verdict.ts';

const { HOSTILE_SEED: seed = '1', HOSTILE_MUTATIONS, HOSTILE_VIDEOS } = process.env;
const [images, videos] = [readImageKinds(), readVideoKinds()];

/** Keeps all workers busy without a 503 for overload. */
const CONNECTIONS = 4;
/** Number of mutations between two checks of valid images. */
const BATCH = 500;

describe(`seed ${seed}`, () => {
  const run = shareHostileRun('mutations');
  /** Mutations by target. */
  const shot = new Map<string, { readonly kind: MutatedKind; readonly index: number }>();

  /** Sends mutations; counts those that were served, were refused, and reached a decoder. */
  async function shootAll(kind: MutatedKind, count: number) {
    const startedMs = performance.now();
    const statuses: number[] = [];
    let rendered = 0;
    const shootNext = async (index: number): Promise<void> => {
      const { bytes, makeTarget } = createMutation(seed, kind, index);
      const name = `${kind.name}:${index}`;
      const target = makeTarget(run().nextId());
      shot.set(target, { kind, index });
      const response = await run().shoot(name, bytes, target);
      if (wasRendered(response)) rendered += 1;
      statuses.push(response.status);
    };
    for (let first = 0; first < count; first += BATCH) {
      let next = first;
      const end = Math.min(first + BATCH, count);
      const drain = async (): Promise<void> => {
        while (next < end) await shootNext(next++);
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, drain));
      await run().expectGoodImages();
    }
    const countOf = (status: number): number => statuses.filter((each) => each === status).length;
    const table = [...new Set(statuses)].sort().map((status) => `${status}: ${countOf(status)}`);
    const pace = `${((1000 * count) / (performance.now() - startedMs)).toFixed(0)} a second`;
    run().note(`${kind.name}: ${table.join(', ')}; ${rendered} seen by a decoder; ${pace}`);
    expect(statuses).toHaveLength(count);
    // Some mutations must reach a decoder, and some must be invalid.
    expect(Math.min(countOf(200), countOf(422))).toBeGreaterThan(count / 50);
    return rendered;
  }

  test.each(images)(
    'mutations of $name are rejected, or served correctly',
    async (kind) => {
      expect(kind.files.length).toBeGreaterThan(5);
      const count = Number(HOSTILE_MUTATIONS ?? 5_000);
      expect(await shootAll(kind, count)).toBeGreaterThan(count / 4);
    },
    3_600_000,
  );

  describe.skipIf(!hasFfmpeg)('(ffmpeg is installed)', () => {
    test.each(videos)(
      'mutations of $name are rejected, or served correctly',
      async (kind) => void (await shootAll(kind, Number(HOSTILE_VIDEOS ?? 200))),
      3_600_000,
    );
  });

  // Saves originals that cost a worker or a deadline, for reproduction.
  afterAll(() => {
    for (const [target, { code, reason }] of run().readLog().refusals) {
      const hasLostWorker = /\bworker (has )?(ended|died|was killed)/i.test(reason);
      if (!hasLostWorker && code !== 'TRANSFORM_TIMEOUT') continue;
      const mutation = shot.get(target);
      if (mutation === undefined) continue; // a good image, which has a test of its own
      const { kind, index } = mutation;
      const name = `${kind.name}:${index}`;
      const { bytes } = createMutation(seed, kind, index);
      keepOriginal('mutations', name, target, bytes, [reason]);
      run().note(`${name}, ${target}: ${code}, ${reason}`);
    }
  });
});
