import { LRUCache } from 'lru-cache';
import { MediaError } from '../contract/errors.ts';
import type { Clock, Log } from './ports.ts';

/** A client's share of rendering (contract §11). */
export interface RateLimits {
  /** Requests of one unit each, within a window. */
  readonly requests: number;
  /** In which so many are given back, evenly, in milliseconds. */
  readonly windowMs: number;
}

interface RateParts {
  readonly clock: Clock;
  /** Milliseconds since 1970, for clients. */
  readonly wallClock: () => number;
  readonly log: Log;
}

/** Charge for a render: its estimate, until its end tells what it took. */
export interface Charge {
  /** A run of the render has ended, or was stopped, after so many milliseconds; there may be several. */
  addRun(tookMs: number): void;
  /** Corrects the charge to the runs that there were: to nothing where none began. To be called once. */
  end(): void;
}

interface ClientState {
  /** When all that it was charged will have been given back; what it owes now is the time until then. */
  readonly clearAtMs: number;
  /** When the log was told last that it has nothing left. */
  readonly toldAtMs: number;
}

/** Milliseconds of one core that are charged as one unit. */
const UNIT_MS = 50;

/** Number of clients that are known, some 200 bytes each. The one that has rendered nothing for longest is forgotten first. */
const MAX_CLIENTS = 100_000;

/** Sums of fractions may be off by this, in milliseconds: a client that waits as long as it is told is served. */
const TOLERANCE_MS = 0.001;

const NEVER_MS = Number.NEGATIVE_INFINITY;

/**
 * Shares of rendering that clients have used up: the generic cell rate algorithm (ITU-T I.371), a moment in time per client. A
 * charge moves that moment on by its units' part of the window; a client whose moment would lie further ahead than
 * one window has nothing left. So all is given back evenly, without a timer, and no one waits for more than a window.
 *
 * Each process counts for itself: in front of replicas, a client has the share of each of them.
 */
export class Rates {
  readonly #limits: RateLimits;
  readonly #parts: RateParts;
  readonly #clients = new LRUCache<string, ClientState>({ max: MAX_CLIENTS });
  /** In how many milliseconds one unit is given back. */
  readonly #unitMs: number;

  constructor(limits: RateLimits, parts: RateParts) {
    this.#limits = limits;
    this.#parts = parts;
    this.#unitMs = limits.windowMs / limits.requests;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /**
   * Charges a client for a render that it begins; rejects a render that the client has too little left for.
   *
   * @param costMs what it is estimated to take of one core, in milliseconds
   * @throws MediaError `RATE_LIMITED`
   */
  charge(client: string, costMs: number): Charge {
    const { requests, windowMs } = this.#limits;
    const estimated = this.#unitsOf(costMs);
    const owedMs = this.#owedMs(client);
    const excessMs = owedMs + estimated * this.#unitMs - windowMs;
    if (excessMs > TOLERANCE_MS) {
      this.#tell(client);
      throw new MediaError('RATE_LIMITED', {
        retryAfterSeconds: Math.ceil(excessMs) / 1000,
        share: {
          requests,
          remaining: Math.floor((windowMs - owedMs + TOLERANCE_MS) / this.#unitMs),
          resetAtMs: this.#parts.wallClock() + owedMs,
        },
      });
    }
    this.#add(client, estimated);
    let sumMs: number | undefined;
    return {
      addRun: (tookMs) => {
        sumMs = (sumMs ?? 0) + tookMs;
      },
      end: () => this.#add(client, (sumMs === undefined ? 0 : this.#unitsOf(sumMs)) - estimated),
    };
  }

  /** One for each 50 ms that are begun, one at least, and the whole limit at most. */
  #unitsOf(costMs: number): number {
    return Math.min(Math.max(Math.ceil(costMs / UNIT_MS), 1), this.#limits.requests);
  }

  /** For how long a client that is charged nothing more is still giving back, in milliseconds. */
  #owedMs(client: string): number {
    return Math.max(
      (this.#clients.get(client)?.clearAtMs ?? NEVER_MS) - this.#parts.clock.nowMs(),
      0,
    );
  }

  /** Never below nothing, nor beyond the limit: what takes far longer than estimated keeps no one waiting for hours. */
  #add(client: string, units: number): void {
    const owedMs = Math.max(this.#owedMs(client) + units * this.#unitMs, 0);
    const toldAtMs = this.#clients.get(client)?.toldAtMs ?? NEVER_MS;
    const clearAtMs = this.#parts.clock.nowMs() + Math.min(owedMs, this.#limits.windowMs);
    this.#clients.set(client, { clearAtMs, toldAtMs });
  }

  /** Tells the log of each client once a window: the line of each request has its status. */
  #tell(client: string): void {
    const nowMs = this.#parts.clock.nowMs();
    const { clearAtMs = nowMs, toldAtMs = NEVER_MS } = this.#clients.get(client) ?? {};
    if (nowMs - toldAtMs < this.#limits.windowMs) return;
    this.#clients.set(client, { clearAtMs, toldAtMs: nowMs });
    this.#parts.log.warn(
      { client, ...this.#limits },
      'a client has used up its share of rendering',
    );
  }
}
