/**
 * Mutations of small videos of each container and codec, through the real service and its decoder.
 *
 *     HOSTILE_VIDEOS=2000   how many of each file
 *     HOSTILE_SEED=1        which ones
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSeededRandom } from '../support/seeded-random.ts';
import { hasFfmpeg } from '../support/videos/ffmpeg.ts';
import { type HostileRun, startHostileRun } from './hostile-run.ts';
import { mutateBytes, mutateParts } from './mutations/mutation.ts';
import { videoBoxes } from './mutations/part-codecs.ts';
import { hasLostWorker } from './service-log.ts';
import { wasRendered } from './verdict.ts';

const FILES = [
  'black-start.mp4',
  'clip-fragmented.mp4',
  'phone-portrait.mov',
  'clip-vp8.webm',
  'odd-vp9.webm',
  'clip-av1.mkv',
];
const { HOSTILE_SEED: seed = '1', HOSTILE_VIDEOS = '200' } = process.env;
const count = Number(HOSTILE_VIDEOS);
const CONNECTIONS = 4;

const videos = FILES.map((name) => readFileSync(`fixtures/video/${name}`));

function mutate(file: Buffer, name: string): Buffer {
  const random = createSeededRandom(`${seed}:${name}`);
  const other = random.pick(videos);
  const inParts =
    random.integer(2) === 0 ? undefined : mutateParts(file, other, videoBoxes, random);
  return inParts ?? mutateBytes(file, other, random);
}

describe.skipIf(!hasFfmpeg)(`seed ${seed}`, () => {
  let run: HostileRun;
  beforeAll(async () => {
    run = await startHostileRun('videos');
  });
  afterAll(() => run.stop());

  test.each(FILES)(
    `${count} mutations of %s`,
    async (file) => {
      const video = readFileSync(`fixtures/video/${file}`);
      const statuses: number[] = [];
      let rendered = 0;
      let next = 0;
      const drain = async (): Promise<void> => {
        while (next < count) {
          const name = `${file}:${next++}`;
          const target = `/attachments/1/${run.nextId()}/clip.mp4?format=webp&width=64`;
          const response = await run.shoot(name, mutate(video, name), target);
          statuses.push(response.status);
          if (wasRendered(response)) rendered += 1;
        }
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, drain));
      await run.expectGoodImages();
      const countOf = (status: number): number => statuses.filter((each) => each === status).length;
      const table = [...new Set(statuses)].sort().map((status) => `${status}: ${countOf(status)}`);
      run.report.note(`${file}: ${table.join(', ')}; ${rendered} seen by a worker`);
      // Neither is everything refused before it is decoded, nor is nothing hurt.
      expect(Math.min(countOf(200), countOf(422))).toBeGreaterThan(count / 50);
    },
    3_600_000,
  );

  test('the service is unharmed', () => {
    for (const [target, refusal] of run.log.refusals) {
      if (!hasLostWorker(refusal) && refusal.code !== 'TRANSFORM_TIMEOUT') continue;
      run.report.note(`${target}: ${refusal.code}, ${refusal.reason}`);
    }
    run.expectUnharmed();
  });
});
