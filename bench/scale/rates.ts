import { MediaError } from '../../src/contract/errors.ts';
import { ASSET_WIDTHS_PX } from '../../src/contract/media-query.ts';
import { type RateLimits, Rates } from '../../src/pipeline/rates.ts';
import { Random } from '../harness/random.ts';
import { Catalogue } from '../trace/catalogue.ts';
import { Population } from '../trace/population.ts';
import { runSession } from '../trace/session.ts';
import { shapesOf } from '../trace/shapes.ts';
import { variants } from '../trace/usages.ts';
import { planRendering } from './workload.ts';

/** A rate, and how renders go. */
export interface RateCase extends RateLimits {
  /** What renders take, beside their estimate: more on a machine that is busy. */
  readonly slowness: number;
}

/** Rates that are compared: requests a minute, on a machine that is idle, and on one that is busy. */
export const rateCases: readonly RateCase[] = [150, 300, 600, 1_200].flatMap((requests) =>
  [1, 3].map((slowness) => ({ requests, windowMs: 60_000, slowness })),
);

/** What becomes of people, and of a scraper, with a rate. */
export interface RateOutcome {
  readonly people: number;
  /** Of those, how many were refused anything. */
  readonly limitedPeople: number;
  /** What the hungriest of them was charged within the visit. */
  readonly mostUnits: number;
  /** When a scraper was refused first, in seconds; infinite if never. */
  readonly scraperLimitedAfterS: number;
  /** Part of its requests in two minutes that were refused. */
  readonly scraperRefusedShare: number;
}

/** One render: when it is asked for, and what it is estimated to take of one core. */
interface RenderAsk {
  readonly atMs: number;
  readonly costMs: number;
}

const PEOPLE = 1_000;
const USERS = 8_000;
/** Before people come, so many have written and scrolled there: channels are full. */
const EARLIER_SESSIONS = 3_000;
/** A person starts the client, opens a channel of the guild, and another one each so many seconds, for a minute. */
const CHANNELS = 6;
const BETWEEN_CHANNELS_MS = 10_000;
/** Beside its render, what a request of a scraper takes; and how many it sends at a time. */
const NETWORK_MS = 30;
const SCRAPER_CONNECTIONS = 4;
const SCRAPER_MS = 120_000;
const UNIT_MS = 50;

/** People and a scraper, as the trace's assumptions have them; the same for each rate. */
export class RateModel {
  readonly #visits: readonly (readonly RenderAsk[])[];

  constructor(seed: number) {
    const catalogue = new Catalogue(seed + 1);
    const population = new Population(USERS, catalogue);
    const random = new Random(seed);
    for (let session = 0; session < EARLIER_SESSIONS; session += 1) {
      runSession(population, catalogue, random, session, { guild: 0, kind: 'channel' });
    }
    this.#visits = Array.from({ length: PEOPLE }, () => drawVisit(population, catalogue, random));
  }

  /** Nothing of it is in a cache: each rendering is made, and charged. */
  run({ slowness, ...limits }: RateCase): RateOutcome {
    const limiter = new ModelLimiter(limits, slowness);
    const refusals = this.#visits.map(
      (visit, person) => visit.filter((render) => !limiter.ask(`person ${person}`, render)).length,
    );
    const units = this.#visits.map((visit) =>
      visit.reduce((sum, { costMs }) => sum + Math.ceil((costMs * slowness) / UNIT_MS), 0),
    );
    return {
      people: this.#visits.length,
      limitedPeople: refusals.filter((count) => count > 0).length,
      mostUnits: Math.max(...units),
      ...scrape(new ModelLimiter(limits, slowness)),
    };
  }
}

function drawVisit(population: Population, catalogue: Catalogue, random: Random): RenderAsk[] {
  const asks: RenderAsk[] = [];
  const seen = new Set<number>();
  for (let step = 0; step <= CHANNELS; step += 1) {
    // With the first channel, the list of guilds.
    const visit = { guild: 0, kind: step === 0 ? 'start' : 'channel' } as const;
    const atMs = Math.max(0, step - 1) * BETWEEN_CHANNELS_MS;
    for (const rendering of runSession(population, catalogue, random, EARLIER_SESSIONS, visit)) {
      if (seen.has(rendering)) continue;
      seen.add(rendering);
      const { original = 0, variant = 0 } = catalogue.renderings[rendering] ?? {};
      const traced = catalogue.originals[original];
      if (traced === undefined) throw new Error(`There is no original ${original}.`);
      const { work, cpuMs } = planRendering(
        traced.kind,
        traced.shape,
        variants[variant]?.ask ?? '',
      );
      if (work === 'render') asks.push({ atMs, costMs: cpuMs });
    }
  }
  return asks;
}

/** The service's own limiter, at times that the model sets; each client's begin anew. */
class ModelLimiter {
  readonly slowness: number;
  readonly #rates: Rates;
  #nowMs = 0;

  constructor(limits: RateLimits, slowness: number) {
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const clock = { nowMs: () => this.#nowMs };
    this.slowness = slowness;
    this.#rates = new Rates(limits, { clock, wallClock: () => this.#nowMs, log });
  }

  /** Whether a render is let through. */
  ask(client: string, { atMs, costMs }: RenderAsk): boolean {
    this.#nowMs = atMs;
    try {
      const charge = this.#rates.charge(client, costMs);
      charge.addRun(costMs * this.slowness);
      charge.end();
      return true;
    } catch (error) {
      if (error instanceof MediaError && error.code === 'RATE_LIMITED') return false;
      throw error;
    }
  }
}

/** Asks for all sizes of all emojis there are, as fast as it is served; a refusal takes the network's time alone. */
function scrape(
  limiter: ModelLimiter,
): Pick<RateOutcome, 'scraperLimitedAfterS' | 'scraperRefusedShare'> {
  let [requests, refused, atMs] = [0, 0, 0];
  let limitedAfterMs = Number.POSITIVE_INFINITY;
  const costs = shapesOf['custom emoji'].flatMap((shape) =>
    ASSET_WIDTHS_PX.map((size) =>
      planRendering('custom emoji', shape, `.webp?size=${size}&animated=true`),
    ),
  );
  const renders = costs.filter(({ work }) => work === 'render');
  while (atMs < SCRAPER_MS) {
    const costMs = renders[requests % renders.length]?.cpuMs ?? 0;
    const isServed = limiter.ask('scraper', { atMs, costMs });
    if (!isServed) {
      refused += 1;
      limitedAfterMs = Math.min(limitedAfterMs, atMs);
    }
    requests += 1;
    atMs += (NETWORK_MS + (isServed ? costMs * limiter.slowness : 0)) / SCRAPER_CONNECTIONS;
  }
  return { scraperLimitedAfterS: limitedAfterMs / 1000, scraperRefusedShare: refused / requests };
}
