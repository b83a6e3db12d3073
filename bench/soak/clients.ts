import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs } from '../harness/load.ts';
import { Random } from '../harness/random.ts';
import { ask } from './exchange.ts';
import type { LoadMix } from './load-mix.ts';
import type { PurposedShot } from './shots.ts';
import type { Visit, Witness } from './visit.ts';

/** How hard the service is driven. */
export interface Pressure {
  /** Clients that each ask one thing after another. */
  readonly clients: number;
  /** Their pause between a response and the next request, on average, in milliseconds. */
  readonly thinkMs: number;
  readonly burstEveryMs: number;
  /** Requests of a burst, all at once. */
  readonly burstRequests: number;
}

/** A time in which too much was asked; milliseconds after the load began. */
export interface Burst {
  readonly startMs: number;
  readonly endMs: number;
}

/** What all clients do: the ones that ask all the time, and those of the bursts. */
export interface ClientsRun {
  readonly origin: string;
  readonly mix: LoadMix;
  readonly witness: Witness;
  readonly pressure: Pressure;
  readonly seed: number;
  /** When the load begins, since 1970. */
  readonly beganMs: number;
}

/** Asks until `signal` aborts, and waits for the last responses. */
export async function runClients(
  { origin, mix, witness, pressure, seed, beganMs }: ClientsRun,
  signal: AbortSignal,
): Promise<{ readonly visits: readonly Visit[]; readonly bursts: readonly Burst[] }> {
  const visits: Visit[] = [];
  const bursts: Burst[] = [];
  const visit = async (shot: PurposedShot): Promise<void> => {
    visits.push(witness.testify(shot, await ask(origin, shot.question), beganMs));
  };
  const visitOn = async (random: Random): Promise<void> => {
    while (await pause(random.exponential(pressure.thinkMs), signal)) await visit(mix.next(random));
  };
  const burstOn = async (random: Random): Promise<void> => {
    while (await pause(pressure.burstEveryMs, signal)) {
      const startMs = epochMs() - beganMs;
      const shots = Array.from({ length: pressure.burstRequests }, () => mix.nextOfBurst(random));
      await Promise.all(shots.map(visit));
      bursts.push({ startMs, endMs: epochMs() - beganMs });
    }
  };
  const loops = Array.from({ length: pressure.clients }, (_, index) =>
    visitOn(new Random(seed + index + 1)),
  );
  await Promise.all([...loops, burstOn(new Random(seed))]);
  return { visits, bursts };
}

/** Waits; `false` if it is over before. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
  return !signal.aborted;
}
