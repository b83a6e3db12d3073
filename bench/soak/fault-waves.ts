import { createHash } from 'node:crypto';
import type { Random } from '../harness/random.ts';

/** What may go wrong with an origin, and for how long after a wave it is still felt, in milliseconds. */
const FAULTS = {
  /** The response comes late, but in time. */
  'slow responses': { isHarmless: true, shadowMs: 2_000 },
  /** It comes after the deadline. */
  'late responses': { isHarmless: false, shadowMs: 12_000 },
  /** Nothing more comes after half of the body. */
  'stalled bodies': { isHarmless: false, shadowMs: 14_000 },
  /** A reset after half of the body. */
  'reset connections': { isHarmless: false, shadowMs: 2_000 },
  /** The connection ends, properly, after half of the body. */
  'truncated bodies': { isHarmless: false, shadowMs: 2_000 },
  'status 500': { isHarmless: false, shadowMs: 2_000 },
  'status 503 SlowDown': { isHarmless: false, shadowMs: 2_000 },
  /** Nothing listens; open connections are dropped. */
  'connections refused': { isHarmless: false, shadowMs: 2_000 },
} as const;

/** A kind of fault. */
export type FaultKind = keyof typeof FAULTS;

/** Share of the keys that a wave strikes; a refused connection knows no key. */
const STRUCK_SHARE = 0.3;

const CYCLE_MS = 40_000;
const WAVE_MS = 12_000;
const REFUSED_WAVE_MS = 5_000;

/** A time in which the origin fails for some keys. Times are milliseconds after the load began. */
export interface Wave {
  readonly index: number;
  readonly kind: FaultKind;
  readonly startMs: number;
  readonly endMs: number;
}

/** Waves for a whole run: one in each cycle, each kind as often as the others, the start left alone. */
export function planWaves(durationMs: number, random: Random): readonly Wave[] {
  const kinds: FaultKind[] = [];
  return Array.from({ length: Math.floor(durationMs / CYCLE_MS) }, (_, index) => {
    if (kinds.length === 0) kinds.push(...random.shuffle(Object.keys(FAULTS) as FaultKind[]));
    const kind = kinds.pop() ?? 'status 500';
    const startMs = index * CYCLE_MS + CYCLE_MS / 2;
    const lengthMs = kind === 'connections refused' ? REFUSED_WAVE_MS : WAVE_MS;
    return { index, kind, startMs, endMs: startMs + lengthMs };
  });
}

/** Whether a wave makes the origin fail for this key. */
export function isStruck({ index, kind }: Wave, key: string): boolean {
  if (kind === 'connections refused') return true;
  const digest = createHash('md5').update(`${index} ${key}`).digest();
  return digest.readUInt16BE() < STRUCK_SHARE * 65_536;
}

/**
 * The wave that struck a key within a span of time, if one did.
 *
 * @param which `harmful`: one that explains a failure; `any`: or a delay
 */
export function findCulprit(
  waves: readonly Wave[],
  key: string,
  fromMs: number,
  toMs: number,
  which: 'harmful' | 'any',
): Wave | undefined {
  return waves.find((wave) => {
    const { isHarmless, shadowMs } = FAULTS[wave.kind];
    const isThen = fromMs < wave.endMs + shadowMs && toMs > wave.startMs;
    return isThen && (which === 'any' || !isHarmless) && isStruck(wave, key);
  });
}
