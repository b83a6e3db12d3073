import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs } from '../harness/load.ts';
import { Random } from '../harness/random.ts';
import { HttpClient } from './exchange.ts';
import type { LoadMix } from './load-mix.ts';
import type { PurposedShot } from './shot.ts';
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

/** All clients of a soak: the ones that ask all the time, and those of the bursts. */
export class Clients {
  readonly visits: Visit[] = [];
  readonly bursts: Burst[] = [];
  readonly #mix: LoadMix;
  readonly #witness: Witness;
  readonly #http: HttpClient;
  readonly #beganMs: number;

  /** @param beganMs when the load begins, since 1970 */
  constructor(origin: string, mix: LoadMix, witness: Witness, beganMs: number) {
    this.#http = new HttpClient(origin);
    this.#mix = mix;
    this.#witness = witness;
    this.#beganMs = beganMs;
  }

  /** Asks until `signal` aborts, and waits for the last responses; then hangs up. */
  async run(pressure: Pressure, seed: number, signal: AbortSignal): Promise<void> {
    const loops = Array.from({ length: pressure.clients }, (_, index) =>
      this.#askOn(new Random(seed + index + 1), pressure.thinkMs, signal),
    );
    await Promise.all([...loops, this.#burstOn(new Random(seed), pressure, signal)]);
    this.#http.close();
  }

  async #askOn(random: Random, thinkMs: number, signal: AbortSignal): Promise<void> {
    while (await pause(random.exponential(thinkMs), signal)) {
      await this.#ask(this.#mix.next(random));
    }
  }

  async #burstOn(random: Random, pressure: Pressure, signal: AbortSignal): Promise<void> {
    while (await pause(pressure.burstEveryMs, signal)) {
      const startMs = epochMs() - this.#beganMs;
      const shots = Array.from({ length: pressure.burstRequests }, () =>
        this.#mix.nextOfBurst(random),
      );
      await Promise.all(shots.map((shot) => this.#ask(shot)));
      this.bursts.push({ startMs, endMs: epochMs() - this.#beganMs });
    }
  }

  async #ask(shot: PurposedShot): Promise<void> {
    const exchange = await this.#http.ask(shot.question);
    this.visits.push(this.#witness.testify(shot, exchange, this.#beganMs));
  }
}

/** Waits; `false` if it is over before. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
  return !signal.aborted;
}
