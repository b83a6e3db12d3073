/** Bombs: originals that cost much more than their size, in each format, through the real service with default limits. */
import { afterAll, describe, expect, test } from 'vitest';
import { apngBombs } from './bombs/apng-bombs.ts';
import { avifBombs } from './bombs/avif-bombs.ts';
import type { Bomb } from './bombs/bomb.ts';
import { gifBombs } from './bombs/gif-bombs.ts';
import { heicBombs } from './bombs/heic-bombs.ts';
import { jpegBombs } from './bombs/jpeg-bombs.ts';
import { otherBombs } from './bombs/other-bombs.ts';
import { pngBombs } from './bombs/png-bombs.ts';
import { webpBombs } from './bombs/webp-bombs.ts';
import { shareHostileRun } from './hostile-run.ts';
import { passthrough } from './targets.ts';
import { wasRendered } from './verdict.ts';

/** Several renders of up to 15 s each, and the creation of the bomb. */
const TIMEOUT_MS = 180_000;

const run = shareHostileRun('bombs');

describe.each<[string, readonly Bomb[]]>([
  ['png', pngBombs],
  ['apng', apngBombs],
  ['jpeg', jpegBombs],
  ['gif', gifBombs],
  ['webp', webpBombs],
  ['avif', avifBombs],
  ['heic', heicBombs],
  ['other', otherBombs],
])('%s', (format, bombs) => {
  test.each(bombs)(
    '$name',
    async ({ name, make, targets, end }) => {
      const original = await make();
      for (const makeTarget of targets) {
        const target = makeTarget(run().nextId());
        const response = await run().shoot(`${format}: ${name}`, original, target);
        if (makeTarget === passthrough || end === 'any') continue;
        const { status } = response;
        expect.soft(status, target).not.toBe(504);
        if (end === 'in time') continue;
        expect.soft(status === 200, `${target}: ${status}`).toBe(end === 'served');
        if (end === 'refused without a render')
          expect.soft(wasRendered(response), target).toBe(false);
      }
    },
    TIMEOUT_MS,
  );

  afterAll(() => run().expectGoodImages());
});
