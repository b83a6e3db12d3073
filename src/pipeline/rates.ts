import { LRUCache } from 'lru-cache';
import { MediaError } from '../contract/errors.ts';
import type { Tools } from './meter.ts';

/** Rate limit of a client (contract §11). */
export interface RateLimits {
  /** Units per window. */
  readonly requests: number;
  /** Time in which all units become available again, in milliseconds. */
  readonly windowMs: number;
}

/** Charge for a render: its estimate, until the render ends. */
export interface Charge {
  /** Adds the time of a run, in milliseconds; there may be several. */
  addRun(tookMs: number): void;
  /** Replaces the estimate by the sum of the runs; without a run, refunds it. Call once. */
  end(): void;
}

interface ClientState {
  readonly clearAtMs: number;
  readonly lastLoggedAtMs: number;
}

/** Milliseconds of one core per unit. */
const UNIT_MS = 50;

/** Maximum number of remembered clients, about 200 bytes each; the least recently charged is forgotten. */
const MAX_CLIENTS = 100_000;

/** Tolerated rounding error, in milliseconds: a client that waits for `Retry-After` is served. */
const TOLERANCE_MS = 0.001;

const NEVER_MS = Number.NEGATIVE_INFINITY;

/**
 * Rate limits by the generic cell rate algorithm (ITU-T I.371), which stores one time per client: when its debt is
 * repaid. A charge that would exceed one window is rejected. Each replica counts for itself.
 */
export class Rates {
  readonly #limits: RateLimits;
  readonly #tools: Omit<Tools, 'meter'>;
  readonly #clients = new LRUCache<string, ClientState>({ max: MAX_CLIENTS });
  readonly #unitMs: number;

  constructor(limits: RateLimits, tools: Omit<Tools, 'meter'>) {
    this.#limits = limits;
    this.#tools = tools;
    this.#unitMs = limits.windowMs / limits.requests;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /**
   * Charges a client for a render. @param costMs estimated milliseconds of one core
   * @throws MediaError `RATE_LIMITED`
   */
  charge(client: string, costMs: number): Charge {
    const { requests, windowMs } = this.#limits;
    const estimated = this.#unitsOf(costMs);
    const owedMs = this.#owedMs(client);
    const excessMs = owedMs + estimated * this.#unitMs - windowMs;
    if (excessMs > TOLERANCE_MS) {
      this.#logOncePerWindow(client);
      throw new MediaError('RATE_LIMITED', {
        retryAfterSeconds: Math.ceil(excessMs) / 1000,
        headers: {
          'X-RateLimit-Limit': String(requests),
          'X-RateLimit-Remaining': String(
            Math.floor((windowMs - owedMs + TOLERANCE_MS) / this.#unitMs),
          ),
          'X-RateLimit-Reset': String(Math.ceil((this.#tools.wallClock() + owedMs) / 1000)),
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

  /** Returns at least one unit, and at most the limit. */
  #unitsOf(costMs: number): number {
    return Math.min(Math.max(Math.ceil(costMs / UNIT_MS), 1), this.#limits.requests);
  }

  #owedMs(client: string): number {
    return Math.max(
      (this.#clients.get(client)?.clearAtMs ?? NEVER_MS) - this.#tools.clock.nowMs(),
      0,
    );
  }

  /** Adds units to the debt, up to one window: one slow render must not block its client for hours. */
  #add(client: string, units: number): void {
    const owedMs = Math.max(this.#owedMs(client) + units * this.#unitMs, 0);
    const lastLoggedAtMs = this.#clients.get(client)?.lastLoggedAtMs ?? NEVER_MS;
    const clearAtMs = this.#tools.clock.nowMs() + Math.min(owedMs, this.#limits.windowMs);
    this.#clients.set(client, { clearAtMs, lastLoggedAtMs });
  }

  #logOncePerWindow(client: string): void {
    const nowMs = this.#tools.clock.nowMs();
    const { clearAtMs = nowMs, lastLoggedAtMs = NEVER_MS } = this.#clients.get(client) ?? {};
    if (nowMs - lastLoggedAtMs < this.#limits.windowMs) return;
    this.#clients.set(client, { clearAtMs, lastLoggedAtMs: nowMs });
    this.#tools.log.warn({ client, ...this.#limits }, 'a client has exceeded its rate limit');
  }
}
