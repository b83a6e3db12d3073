import fc from 'fast-check';
import { manners, originScripts, periods, renderScripts, variants } from './cache-model.ts';

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
const manner = fc.constantFrom('get', ...manners);
/** Where those who ask are held while something else happens. */
const at = fc.constantFrom('origin', 'render');
/** By what an original is purged; `others` spares it. */
const purged = ['key', 'path', 'prefix', 'others'] as const;
const changes = ['picture', 'picture', 'text', 'touch', 'delete', 'lifetime'] as const;
const storeScripts = ['works', 'works', 'fails', 'hangs', 'forgets'] as const;

/** One thing that happens to an original. */
const stepOf = (original: fc.Arbitrary<number>) => {
  const plain = fc.record({ original, variant, as: fc.constant('get' as const) });
  const request = fc.record({ original, variant, as: manner });
  return fc.oneof(
    step(8, 'request', { request }),
    // Time passes until just before, at or after the end of a period in force.
    step(5, 'wait', { which: fc.nat(9), offsetMs: fc.constantFrom(-1, 0, 1) }),
    step(2, 'change', {
      original,
      how: fc.constantFrom(...changes),
      freshForMs: fc.constantFrom(periods.siteLeast, periods.siteLonger),
    }),
    step(2, 'origin', { original, script: fc.constantFrom('responds', ...originScripts) }),
    step(1, 'renderer', { original, script: fc.constantFrom(...renderScripts) }),
    step(1, 'store', { script: fc.constantFrom(...storeScripts) }),
    step(1, 'purge', { request: plain, by: fc.constantFrom(...purged) }),
    step(1, 'upload', { original, replaces: fc.boolean() }),
    // All ask the same at once; some leave, and where all have left, one more comes.
    step(2, 'crowd', {
      request: plain,
      at,
      leaving: fc.array(fc.boolean(), { minLength: 2, maxLength: 5 }),
    }),
    // All ask at once for something of one original.
    step(2, 'burst', {
      original,
      requests: fc.array(fc.record({ variant, as: manner }), { minLength: 2, maxLength: 5 }),
    }),
    // While one waits, its original changes, or is purged; another asks for the same.
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

/** Walks, most of which stay with one of the originals. */
export const walks: fc.Arbitrary<Step[]> = fc
  .option(fc.nat(2), { freq: 4, nil: undefined })
  .chain((only) =>
    fc.array(stepOf(only === undefined ? fc.nat(2) : fc.constant(only)), {
      ...{ minLength: 1, maxLength: 20, size: 'max' },
    }),
  );
