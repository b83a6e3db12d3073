/**
 * Bombs: originals made to cost more than they are worth, in each format, one at a time, through the
 * real service with its default limits. What each has cost is in `test-report/hostile/bombs.tsv`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { avifBombs } from './bombs/avif-bombs.ts';
import type { Bomb } from './bombs/bomb.ts';
import { gifBombs } from './bombs/gif-bombs.ts';
import { jpegBombs } from './bombs/jpeg-bombs.ts';
import { otherBombs } from './bombs/other-bombs.ts';
import { pngBombs } from './bombs/png-bombs.ts';
import { webpBombs } from './bombs/webp-bombs.ts';
import { HostileRun } from './hostile-run.ts';

/** Several renders of up to 15 s each, and the making of the bomb. */
const TIMEOUT_MS = 180_000;

let run: HostileRun;
beforeAll(async () => {
  run = await HostileRun.start('bombs');
});
afterAll(() => run.stop());

describe.each<[string, readonly Bomb[]]>([
  ['png', pngBombs],
  ['jpeg', jpegBombs],
  ['gif', gifBombs],
  ['webp', webpBombs],
  ['avif', avifBombs],
  ['other', otherBombs],
])('%s', (format, bombs) => {
  test.each(bombs)(
    '$name',
    async ({ name, make, ways, end }) => {
      const original = await make();
      for (const way of ways) {
        const target = way.target(run.nextId());
        const { answer } = await run.shootAlone(`${format}: ${name}`, way.name, original, target);
        if (way.name === 'passthrough' || end === undefined) continue;
        expect.soft(answer.status, way.name).not.toBe(504);
        if (end === 'in time') continue;
        expect.soft(answer.status === 200, `${way.name}: ${answer.status}`).toBe(end === 'served');
        const wasRendered = /\brender\b/.test(String(answer.headers['server-timing']));
        if (end === 'refused unseen') expect.soft(wasRendered, way.name).toBe(false);
      }
    },
    TIMEOUT_MS,
  );

  afterAll(() => run.expectGoodImages());
});

test('the service is unharmed', () => {
  run.expectUnharmed();
});
