import { MediaError } from '../../src/contract/errors.ts';
import { ASSET_WIDTHS_PX } from '../../src/contract/media-query.ts';
import { type RateLimits, Rates } from '../../src/pipeline/rates.ts';
import { Random } from '../harness/random.ts';
import { sumOf } from '../harness/report.ts';
import { Catalogue } from '../trace/catalogue.ts';
import { Population } from '../trace/population.ts';
import { runSession } from '../trace/session.ts';
import { shapesOf } from '../trace/shapes.ts';
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

/** What becomes of people, and of a scraper, with a rate. */
export type RateModel = ReturnType<typeof createRateModel>;

/**
 * People and a scraper, as the trace's assumptions have them; the same for each rate. Nothing of it is in a cache: each
 * rendering is made, and charged.
 */
export function createRateModel(seed: number) {
  const catalogue = new Catalogue(seed + 1);
  const population = new Population(USERS, catalogue);
  const random = new Random(seed);
  for (let session = 0; session < EARLIER_SESSIONS; session += 1) {
    runSession(population, catalogue, random, session, { guild: 0, kind: 'channel' });
  }
  const visits = Array.from({ length: PEOPLE }, () => drawVisit(population, catalogue, random));
  return (rateCase: RateCase) => {
    const isServed = createLimiter(rateCase);
    const limited = visits.filter(
      (visit, person) => visit.filter((render) => !isServed(`person ${person}`, render)).length > 0,
    );
    const units = visits.map((visit) =>
      sumOf(visit, ({ costMs }) => Math.ceil((costMs * rateCase.slowness) / UNIT_MS)),
    );
    return {
      people: visits.length,
      /** Of those, how many were refused anything. */
      limitedPeople: limited.length,
      /** What the hungriest of them was charged within the visit. */
      mostUnits: Math.max(...units),
      ...scrape(rateCase),
    };
  };
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
      const { original, ask } = catalogue.renderings[rendering] ?? { original: -1, ask: '' };
      const { work, cpuMs } = planRendering(catalogue.original(original), ask);
      if (work === 'render') asks.push({ atMs, costMs: cpuMs });
    }
  }
  return asks;
}

/** Whether a render of a client is let through. */
type Limiter = (client: string, render: RenderAsk) => boolean;

/** The service's own limiter, at times that the model sets; each client's begin anew. */
function createLimiter({ slowness, ...limits }: RateCase): Limiter {
  let nowMs = 0;
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const rates = new Rates(limits, { clock: { nowMs: () => nowMs }, wallClock: () => nowMs, log });
  return (client, { atMs, costMs }) => {
    nowMs = atMs;
    try {
      const charge = rates.charge(client, costMs);
      charge.addRun(costMs * slowness);
      charge.end();
      return true;
    } catch (error) {
      if (error instanceof MediaError && error.code === 'RATE_LIMITED') return false;
      throw error;
    }
  };
}

/** Asks for all sizes of all emojis there are, as fast as it is served; a refusal takes the network's time alone. */
function scrape(rateCase: RateCase) {
  const isServed = createLimiter(rateCase);
  const renders = shapesOf['custom emoji']
    .flatMap((shape) =>
      ASSET_WIDTHS_PX.map((size) =>
        planRendering({ kind: 'custom emoji', shape }, `.webp?size=${size}&animated=true`),
      ),
    )
    .filter(({ work }) => work === 'render');
  let [requests, refused, atMs] = [0, 0, 0];
  let limitedAfterMs = Number.POSITIVE_INFINITY;
  while (atMs < SCRAPER_MS) {
    let tookMs = NETWORK_MS;
    const costMs = renders[requests % renders.length]?.cpuMs ?? 0;
    if (isServed('scraper', { atMs, costMs })) tookMs += costMs * rateCase.slowness;
    else {
      refused += 1;
      limitedAfterMs = Math.min(limitedAfterMs, atMs);
    }
    requests += 1;
    atMs += tookMs / SCRAPER_CONNECTIONS;
  }
  return {
    /** When it was refused first, in seconds; infinite if never. */
    scraperLimitedAfterS: limitedAfterMs / 1000,
    /** Part of its requests in two minutes that were refused. */
    scraperRefusedShare: refused / requests,
  };
}
