import { Random } from '../harness/random.ts';
import { assumptions, DAY_S } from './assumptions.ts';
import { Catalogue } from './catalogue.ts';
import { Population } from './population.ts';
import { runSession } from './session.ts';

export interface TraceOptions {
  readonly seed: number;
  /** Requests in all; the last session is not cut short, so that there may be a few more. */
  readonly requests: number;
  /** Days they are spread over. */
  readonly days: number;
}

/** Requests in the order of their times; the same for the same options, on every machine. */
export type Trace = ReturnType<typeof generateTrace>;

/** How often content is replaced, in seconds of the trace. */
const TURNOVER_STEP_S = 600;

/** Sessions at the mean; only for the first guess at their rate, which then follows the requests. */
const REQUESTS_PER_SESSION = 16;

/** Generates a trace: so many users as ask for that much a day, by `assumptions`. */
export function generateTrace(options: TraceOptions) {
  const { seed, requests, days } = options;
  const random = new Random(seed);
  const catalogue = new Catalogue(seed + 1);
  const requestsPerDay = requests / days;
  const population = new Population(requestsPerDay / assumptions.requestsPerUserPerDay, catalogue);
  const seconds = new Float64Array(requests + 1_000);
  const renderings = new Int32Array(requests + 1_000);
  const endS = days * DAY_S;
  let count = 0;
  let nowS = 0;
  let turnedS = 0;
  while (count < requests) {
    // What is left to ask for, over the time that is left.
    const left = Math.max(1, (requests - count) / REQUESTS_PER_SESSION);
    const meanS = Math.max(0, endS - nowS) / left;
    nowS += random.exponential(meanS / rateAt(nowS));
    if (nowS - turnedS > TURNOVER_STEP_S) {
      population.turnOver(nowS - turnedS, nowS, random);
      turnedS = nowS;
    }
    for (const rendering of runSession(population, catalogue, random, nowS)) {
      if (count === seconds.length) break;
      seconds[count] = nowS;
      renderings[count] = rendering;
      count += 1;
    }
  }
  return {
    options,
    /** What was asked for, and what it was made of. */
    catalogue,
    /** Seconds since the start, of each request. */
    seconds: seconds.subarray(0, count),
    /** Number of the rendering that each asks for. */
    renderings: renderings.subarray(0, count),
    /** What was deleted until the end, and when, in the order of the times. */
    deletions: catalogue.originals
      .map(({ deletedS }, original) => ({ seconds: deletedS, original }))
      .filter((deletion) => deletion.seconds <= nowS)
      .sort((one, other) => one.seconds - other.seconds),
  };
}

/** Of the mean rate of requests, at this time of the day. */
function rateAt(nowS: number): number {
  return 1 + assumptions.dailySwing * Math.sin((2 * Math.PI * nowS) / DAY_S);
}
