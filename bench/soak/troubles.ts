import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../harness/random.ts';

/** Failures that a fault excuses: requests that need an original, rejected renders, leftover files, or none. */
type Excuse = 'originals' | 'renders' | 'files' | 'nothing';

/** Fault that lasts for a while. */
export interface Fault {
  readonly name: string;
  readonly excuses: Excuse;
  /** Time for which the fault still affects the service after its end. */
  readonly lingerMs: number;
  readonly begin?: () => unknown;
  readonly end?: () => unknown;
}

const CYCLE_MS = 40_000;
const WAVE_MS = 12_000;

/** Injects faults, and records their times. */
export class Troubles {
  /** Times in milliseconds since 1970; the end is infinite while the fault lasts. */
  readonly #troubles: { readonly fault: Fault; readonly startMs: number; endMs: number }[] = [];

  get names(): readonly string[] {
    return this.#troubles.map(({ fault }) => fault.name);
  }

  /** Whether a fault excuses such failures within a span of time. */
  isExcused(what: Excuse, fromMs: number, toMs: number): boolean {
    return this.#troubles.some(
      ({ fault, startMs, endMs }) => fault.excuses === what && fromMs < endMs && toMs > startMs,
    );
  }

  /** Injects a fault until `during` ends. */
  async make(fault: Fault, during: () => Promise<unknown>): Promise<void> {
    const trouble = { fault, startMs: Date.now(), endMs: Number.POSITIVE_INFINITY };
    this.#troubles.push(trouble);
    await fault.begin?.();
    await during();
    await fault.end?.();
    trouble.endMs = Date.now() + fault.lingerMs;
  }

  /** Injects one fault in each cycle until the load ends, all faults equally often. */
  async makeWaves(faults: readonly Fault[], random: Random, over: AbortSignal): Promise<void> {
    let left: Fault[] = [];
    let restMs = CYCLE_MS / 2;
    while (await pause(restMs, over)) {
      if (left.length === 0) left = random.shuffle(faults);
      const fault = left.pop();
      if (fault === undefined) return;
      await this.make(fault, () => pause(WAVE_MS, over));
      restMs = CYCLE_MS - WAVE_MS;
    }
  }
}

/** Waits; returns `false` if the load ends before. */
export async function pause(ms: number, over: AbortSignal): Promise<boolean> {
  await sleep(Math.max(0, ms), undefined, { signal: over }).catch(() => undefined);
  return !over.aborted;
}
