import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs } from '../harness/load.ts';
import { Random } from '../harness/random.ts';
import { ask } from './exchange.ts';
import type { LoadMix, PurposedShot } from './load-mix.ts';
import type { Visit, Witness } from './visit.ts';

/** How hard the service is driven. */
export interface Pressure {
  /** Clients that each ask one thing after another. */
  readonly clients: number;
  /** Their pause between a response and the next request, on average, in milliseconds. */
  readonly thinkMs: number;
  /** Requests of a burst, all at once. */
  readonly burstRequests: number;
}

const BURST_EVERY_MS = 90_000;

/** A time in which too much was asked; milliseconds since 1970. */
export interface Burst {
  readonly startMs: number;
  readonly endMs: number;
}

/** Asks until it is over, all the time and in bursts, and waits for the last responses. */
export async function runClients(
  origin: string,
  mix: LoadMix,
  witness: Witness,
  pressure: Pressure,
  seed: number,
  over: AbortSignal,
) {
  const visits: Visit[] = [];
  const bursts: Burst[] = [];
  const visit = async (shot: PurposedShot): Promise<void> => {
    visits.push(witness.testify(shot, await ask(origin, shot)));
  };
  const visitOn = async (random: Random): Promise<void> => {
    while (await pause(random.exponential(pressure.thinkMs), over)) await visit(mix.next(random));
  };
  const burstOn = async (random: Random): Promise<void> => {
    while (await pause(BURST_EVERY_MS, over)) {
      const startMs = epochMs();
      const shots = Array.from({ length: pressure.burstRequests }, () => mix.nextOfBurst(random));
      await Promise.all(shots.map(visit));
      bursts.push({ startMs, endMs: epochMs() });
    }
  };
  const loops = Array.from({ length: pressure.clients }, (_, index) =>
    visitOn(new Random(seed + index + 1)),
  );
  await Promise.all([...loops, burstOn(new Random(seed))]);
  return { visits, bursts };
}

/** Waits; `false` if it is over before. */
export async function pause(ms: number, over: AbortSignal): Promise<boolean> {
  await sleep(Math.max(0, ms), undefined, { signal: over }).catch(() => undefined);
  return !over.aborted;
}
