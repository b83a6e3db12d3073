import fc from 'fast-check';
import { originScripts, periods, renderScripts, requestKinds, variants } from './cache-model.ts';

function step<Kind extends string, Rest>(
  weight: number,
  kind: Kind,
  rest: { [Name in keyof Rest]: fc.Arbitrary<Rest[Name]> },
) {
  const arbitrary = fc
    .record(rest)
    .map((drawn) => ({ do: kind, ...drawn }) as { readonly do: Kind } & Rest);
  return { weight, arbitrary };
}

const variant = fc.constantFrom('small', 'large', ...variants);
const requestKind = fc.constantFrom('get', ...requestKinds);
/** Stage at which requests pause while something else happens. */
const at = fc.constantFrom('origin', 'render');
/** Kind of purge; `others` spares the original. */
const purged = ['key', 'path', 'prefix', 'others'] as const;
const changes = ['picture', 'picture', 'text', 'touch', 'delete', 'lifetime'] as const;
const storeScripts = ['works', 'works', 'fails', 'hangs', 'forgets'] as const;

const stepOf = (original: fc.Arbitrary<number>) => {
  const plain = fc.record({ original, variant, as: fc.constant('get' as const) });
  const request = fc.record({ original, variant, as: requestKind });
  return fc.oneof(
    step(8, 'request', { request }),
    // Time passes until just before, at, or after the end of a period.
    step(5, 'wait', { which: fc.nat(9), offsetMs: fc.constantFrom(-1, 0, 1) }),
    step(2, 'change', {
      original,
      how: fc.constantFrom(...changes),
      freshForMs: fc.constantFrom(periods.siteMinimum, periods.siteLonger),
    }),
    step(2, 'origin', { original, script: fc.constantFrom('responds', ...originScripts) }),
    step(1, 'renderer', { original, script: fc.constantFrom(...renderScripts) }),
    step(1, 'store', { script: fc.constantFrom(...storeScripts) }),
    step(1, 'purge', { request: plain, by: fc.constantFrom(...purged) }),
    step(1, 'upload', { original, replaces: fc.boolean() }),
    // Equal concurrent requests, some of which leave; one more arrives if all have left.
    step(2, 'crowd', {
      request: plain,
      at,
      leaving: fc.array(fc.boolean(), { minLength: 2, maxLength: 5 }),
    }),
    // Concurrent requests for one original.
    step(2, 'burst', {
      original,
      requests: fc.array(fc.record({ variant, as: requestKind }), { minLength: 2, maxLength: 5 }),
    }),
    // While a request waits, its original changes or is purged, and an equal request arrives.
    step(2, 'race', {
      request: plain,
      at,
      event: fc.constantFrom(...purged, 'upload'),
      isReplaced: fc.boolean(),
    }),
  );
};

type Drawn<Source> = Source extends fc.Arbitrary<infer Value> ? Value : never;
export type Step = Drawn<ReturnType<typeof stepOf>>;
export type StepOf<Kind extends Step['do']> = Extract<Step, { do: Kind }>;

/** Walks, most of which use a single original. */
export const walks: fc.Arbitrary<Step[]> = fc
  .option(fc.nat(2), { freq: 4, nil: undefined })
  .chain((only) =>
    fc.array(stepOf(only === undefined ? fc.nat(2) : fc.constant(only)), {
      minLength: 1,
      maxLength: 20,
      size: 'max',
    }),
  );
