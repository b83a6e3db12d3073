import { epochMs } from '../../harness/load.ts';
import type { Random } from '../../harness/random.ts';
import { pause } from '../clients.ts';

const CYCLE_MS = 40_000;
const WAVE_MS = 12_000;

/** What may go wrong for a while. */
export interface WaveKind {
  readonly name: string;
  /** What it happens to. A store of renderings that fails is no excuse for anything. */
  readonly victim: 'originals' | 'renderings';
  /** Responses come late, but in time. */
  readonly isHarmless?: boolean;
  /** For how long after a wave it is still felt. */
  readonly shadowMs: number;
  readonly begin: () => void | Promise<void>;
  readonly end: () => void | Promise<void>;
}

/** A time in which something fails; milliseconds since 1970. */
export interface Wave {
  readonly kind: WaveKind;
  readonly startMs: number;
  readonly endMs: number;
}

/** Whether a wave within a span of time explains that an original could not be read. */
export function isStruck(waves: readonly Wave[], fromMs: number, toMs: number): boolean {
  return waves.some(({ kind, startMs, endMs }) => {
    const isThen = fromMs < endMs + kind.shadowMs && toMs > startMs;
    return isThen && kind.victim === 'originals' && kind.isHarmless !== true;
  });
}

/** Lets things fail in waves until it is over: one in each cycle, each kind as often as the others, the start left alone. */
export async function strike(
  kinds: readonly WaveKind[],
  random: Random,
  over: AbortSignal,
): Promise<Wave[]> {
  const beganMs = epochMs();
  const waves: Wave[] = [];
  const left: WaveKind[] = [];
  for (;;) {
    const isTime = await pause(beganMs + (waves.length + 0.5) * CYCLE_MS - epochMs(), over);
    if (left.length === 0) left.push(...random.shuffle(kinds));
    const kind = left.pop();
    if (!isTime || kind === undefined) return waves;
    const startMs = epochMs();
    await kind.begin();
    await pause(startMs + WAVE_MS - epochMs(), over);
    await kind.end();
    waves.push({ kind, startMs, endMs: epochMs() });
  }
}
