import type { Counts } from './counts.ts';

/** What reaches each tier, and how much of that it answers: both in requests. */
export interface HitRatios {
  readonly edge: Ratio;
  readonly memory: Ratio;
  readonly store: Ratio;
  readonly heldOriginal: Ratio;
}

/** `answered` of `asked`. */
export interface Ratio {
  readonly answered: number;
  readonly asked: number;
}

/** Hit ratios as the formulae of docs/performance.md take them: each of what the tiers before it have left. */
export function hitRatiosOf({ requests, tiers }: Counts): HitRatios {
  const transforms = requests - tiers.edge - tiers.passthrough - tiers.missing;
  const beyondMemory = transforms - tiers.memory;
  const beyondStore = beyondMemory - tiers.store;
  return {
    edge: { answered: tiers.edge, asked: requests },
    memory: { answered: tiers.memory, asked: transforms },
    store: { answered: tiers.store, asked: beyondMemory },
    heldOriginal: { answered: tiers['held original'], asked: beyondStore },
  };
}

/** So many for each million requests. */
export function perMillion(count: number, { requests }: Counts): number {
  return requests === 0 ? 0 : (count * 1e6) / requests;
}
