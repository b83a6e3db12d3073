import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scrape } from '../support/telemetry/prometheus-text.ts';
import { atScale } from '../support/test-scale.ts';
import { CacheModel, periods, type Setup, type Variant } from './cache-model.ts';
import { type Step, type StepOf, walks } from './cache-steps.ts';
import { createWalk } from './cache-walk.ts';
import { createWorld } from './cache-world.ts';

const RUNS = atScale(200, 5_000);

const keepsAll = { keepsResults: true, keepsOriginals: true, freshForMs: periods.fresh };
const setups: readonly Setup[] = [
  { ...keepsAll, hasStore: false, returnsBytes: false },
  { ...keepsAll, hasStore: true, returnsBytes: true },
  { ...keepsAll, hasStore: true, returnsBytes: false, keepsResults: false, keepsOriginals: false },
  { ...keepsAll, hasStore: false, returnsBytes: true, keepsOriginals: false, freshForMs: 0 },
];

const of = (variant: Variant, original = 0) => ({ original, variant, as: 'get' as const });
const request = (...parts: Parameters<typeof of>): Step => ({
  do: 'request',
  request: of(...parts),
});
const renderer = (script: StepOf<'renderer'>['script']): Step => {
  return { do: 'renderer', original: 0, script };
};
/** Advances to the end of a remembered period. */
const wait = (which = 0, offsetMs: -1 | 0 | 1 = 0): Step => ({ do: 'wait', which, offsetMs });

const upload: Step = { do: 'upload', original: 0, replaces: false };
const unchanged = { do: 'change', original: 0, freshForMs: periods.siteMinimum } as const;
const remove: Step = { ...unchanged, how: 'delete' };
const replace: Step = { ...unchanged, how: 'picture' };
const lengthen: Step = {
  do: 'change',
  original: 2,
  how: 'lifetime',
  freshForMs: periods.siteLonger,
};
const origin = (script: StepOf<'origin'>['script']): Step => {
  return { do: 'origin', original: 0, script };
};
const race = (event: StepOf<'race'>['event'], at: 'origin' | 'render'): Step => {
  return { do: 'race', request: of('small'), at, event, isReplaced: true };
};
const purge: Step = { do: 'purge', request: of('small'), by: 'key' };
const healed = [renderer('succeeds'), request('small')];
const loseThreeWorkers = [
  renderer('costs a worker'),
  request('small'),
  request('large'),
  request('png'),
];

/** Past bugs, and cases that a short run may miss: a setup, and steps. */
const examples: [number, Step[]][] = [
  // An original that lost three workers is refused, until it is purged.
  [0, [...loseThreeWorkers, wait(), request('small'), request('large'), wait(), request('png')]],
  [0, [...loseThreeWorkers, purge, ...healed]],
  // A refusal of an original ends after ten minutes.
  [0, [renderer('is late'), request('small'), ...Array(12).fill(wait(0, 1)), wait(), wait()]],
  // A late render does not affect cheaper ones.
  [
    0,
    [renderer('is late'), request('small'), renderer('succeeds'), request('large'), request('png')],
  ],
  [
    0,
    [
      renderer('is late'),
      request('large'),
      request('small'),
      wait(),
      request('large'),
      request('png'),
    ],
  ],
  // A new original is served immediately, regardless of what was remembered.
  [3, [renderer('refuses'), request('small'), remove, request('large'), upload, ...healed]],
  [0, [remove, race('upload', 'origin')]],
  // A past failure does not count.
  [
    2,
    [
      origin('fails'),
      request('small'),
      origin('responds'),
      wait(),
      request('small'),
      request('small'),
    ],
  ],
  // Another site may declare another freshness for the same content.
  [0, [request('small', 2), lengthen, wait(), request('small', 2)]],
  // A purge discards results, refusals and failures of work that began before it.
  ...[0, 1, 2].flatMap((setup): [number, Step[]][] => [
    [setup, [race('key', 'render'), race('path', 'origin')]],
    [setup, [renderer('refuses'), race('prefix', 'render'), ...healed]],
    [
      setup,
      [
        request('small'),
        origin('fails'),
        race('key', 'origin'),
        origin('responds'),
        request('small'),
      ],
    ],
    [
      setup,
      [
        request('small'),
        replace,
        wait(1),
        request('small'),
        remove,
        wait(1),
        upload,
        request('small'),
      ],
    ],
  ]),
];

/** Outcomes that each run must include. */
const statuses = [
  ...['200 hit', '200 hit; detail=store', '200 hit; detail=stale-if-error', '304 hit', '404 hit'],
  ...['200 fwd=stale; fwd-status=304', '200 fwd=stale; detail=stale-if-error', '304 fwd=miss'],
  ...['200 fwd=stale; stored', '415 hit', '422 hit', '502 fwd=miss', '503 fwd=miss', '504 hit'],
];
const races = ['a race', 'a race that is joined'];

test('each response and its work match the prediction from earlier requests', async () => {
  const worlds = await Promise.all(setups.map(createWorld));
  const met = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fc.nat(setups.length - 1), walks, async (index, steps) => {
      const [setup, world] = [setups[index], worlds[index]];
      if (setup === undefined || world === undefined) return;
      const take = createWalk(world, new CacheModel(setup, world.begin()), met);
      for (const each of steps) await take(each);
    }),
    { numRuns: RUNS + examples.length, examples },
  );
  for (const { app } of worlds) {
    expect((await scrape(app)).read('darkroom_originals_held_bytes')).toBe(0);
  }
  // Otherwise the run covered too little.
  for (const what of [...statuses, 'a crowd', 'a crowd that left', 'a burst', ...races]) {
    expect(met.get(what) ?? 0, what).toBeGreaterThan(0);
  }
}, 600_000);
