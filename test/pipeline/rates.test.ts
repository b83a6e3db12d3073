import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MediaError } from '../../src/contract/errors.ts';
import { type Charge, type RateParts, Rates } from '../../src/pipeline/rates.ts';
import { RecordedLog } from '../support/recorded-log.ts';
import { FakeClock } from '../support/test-app.ts';

const UNIT_MS = 50;

/** When it is, for clients. */
const WALL_MS = 1_763_769_600_000;

const partsOf = (clock: FakeClock, log = new RecordedLog()): RateParts => ({
  clock,
  wallClock: () => WALL_MS,
  log,
});

/** The refusal of a render, if it is refused. */
function refusalOf(rates: Rates, client: string, costMs: number): MediaError | Charge {
  try {
    return rates.charge(client, costMs);
  } catch (error) {
    expect(error).toBeInstanceOf(MediaError);
    return error as MediaError;
  }
}

/** One client, modelled as a list of the moments at which its units come back, one after the other. */
class NaiveClient {
  readonly #requests: number;
  readonly #unitMs: number;
  #comesBackAtMs: number[] = [];

  constructor(requests: number, unitMs: number) {
    this.#requests = requests;
    this.#unitMs = unitMs;
  }

  /** How long until so many units can be had; 0 if now. */
  waitFor(units: number, nowMs: number): number {
    this.#forget(nowMs);
    const missing = this.#comesBackAtMs.length + units - this.#requests;
    return missing <= 0 ? 0 : (this.#comesBackAtMs[missing - 1] ?? 0) - nowMs;
  }

  take(units: number, nowMs: number): void {
    this.#forget(nowMs);
    for (let unit = 0; unit < units; unit += 1) {
      const lastMs = this.#comesBackAtMs.at(-1) ?? nowMs;
      this.#comesBackAtMs.push(lastMs + this.#unitMs);
    }
    if ((this.#comesBackAtMs.at(-1) ?? nowMs) <= nowMs + this.#requests * this.#unitMs) return;
    // It owes everything, and no more than that.
    this.#comesBackAtMs = Array.from(
      { length: this.#requests },
      (_, index) => nowMs + (index + 1) * this.#unitMs,
    );
  }

  giveBack(units: number, nowMs: number): void {
    this.#forget(nowMs);
    this.#comesBackAtMs.splice(Math.max(this.#comesBackAtMs.length - units, 0));
  }

  remaining(nowMs: number): number {
    this.#forget(nowMs);
    return this.#requests - this.#comesBackAtMs.length;
  }

  #forget(nowMs: number): void {
    this.#comesBackAtMs = this.#comesBackAtMs.filter((momentMs) => momentMs > nowMs);
  }
}

type Step =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'begin'; readonly client: number; readonly costMs: number }
  | { readonly kind: 'end'; readonly which: number; readonly tookMs: number | undefined };

const costMs = fc.oneof(fc.integer({ min: 0, max: 400 }), fc.constantFrom(0, 50, 51, 1e6, 1e300));
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('wait'), ms: fc.integer({ min: 0, max: 600 }) }),
  fc.record({ kind: fc.constant('begin'), client: fc.nat(2), costMs }),
  fc.record({
    kind: fc.constant('end'),
    which: fc.nat(20),
    tookMs: fc.option(costMs, { nil: undefined }),
  }),
);

test('charges, corrections and refusals are those of a naive model, client by client', () => {
  let [allowed, refused, corrected] = [0, 0, 0];
  const property = fc.property(
    fc.integer({ min: 1, max: 8 }),
    fc.integer({ min: 1, max: 700 }),
    fc.array(step, { minLength: 60, maxLength: 200 }),
    (requests, unitMs, steps) => {
      const clock = new FakeClock();
      const rates = new Rates({ requests, windowMs: requests * unitMs }, partsOf(clock));
      const models = Array.from({ length: 3 }, () => new NaiveClient(requests, unitMs));
      const running: { charge: Charge; model: NaiveClient; units: number }[] = [];
      const unitsOf = (ms: number): number =>
        Math.min(Math.max(Math.ceil(ms / UNIT_MS), 1), requests);
      for (const it of steps) {
        if (it.kind === 'wait') clock.advance(it.ms);
        if (it.kind === 'begin') {
          const model = models[it.client] as NaiveClient;
          const units = unitsOf(it.costMs);
          const waitMs = model.waitFor(units, clock.nowMs());
          const outcome = refusalOf(rates, `client ${it.client}`, it.costMs);
          if (waitMs > 0) {
            refused += 1;
            expect(outcome).toMatchObject({
              code: 'RATE_LIMITED',
              retryAfterSeconds: waitMs / 1000,
              share: { requests, remaining: model.remaining(clock.nowMs()) },
            });
            continue;
          }
          allowed += 1;
          expect(outcome).not.toBeInstanceOf(MediaError);
          model.take(units, clock.nowMs());
          running.push({ charge: outcome as Charge, model, units });
        }
        if (it.kind === 'end' && running.length > 0) {
          const [render] = running.splice(it.which % running.length, 1);
          if (render === undefined) continue;
          const { charge, model, units } = render;
          // In two runs: a light one that took too long is begun anew as a heavy one.
          if (it.tookMs !== undefined) {
            charge.addRun(it.tookMs / 4);
            charge.addRun((it.tookMs * 3) / 4);
          }
          charge.end();
          const more = (it.tookMs === undefined ? 0 : unitsOf(it.tookMs)) - units;
          if (more !== 0) corrected += 1;
          if (more > 0) model.take(more, clock.nowMs());
          else model.giveBack(-more, clock.nowMs());
        }
      }
    },
  );
  fc.assert(property, { numRuns: 60 });
  // Something was compared.
  for (const count of [allowed, refused, corrected]) expect(count).toBeGreaterThan(500);
});

test('who waits as long as it is told is served, whatever the fractions', () => {
  const property = fc.property(
    fc.integer({ min: 1, max: 1_000_000 }),
    fc.integer({ min: 1, max: 86_400 }),
    fc.integer({ min: 1, max: 100_000 }),
    (requests, windowSeconds, cost) => {
      const clock = new FakeClock();
      clock.advance(Math.PI * 1e6);
      const limits = { requests, windowMs: windowSeconds * 1000 };
      const rates = new Rates(limits, partsOf(clock));
      rates.charge('a', Infinity);
      const refusal = refusalOf(rates, 'a', cost) as MediaError;
      const { retryAfterSeconds = 0, share } = refusal;
      expect(share).toMatchObject({ requests, remaining: 0 });
      expect(share?.resetAtMs).toBeCloseTo(WALL_MS + limits.windowMs, 1);
      expect(retryAfterSeconds).toBeGreaterThan(0);
      expect(retryAfterSeconds).toBeLessThanOrEqual(windowSeconds);
      clock.advance(retryAfterSeconds * 1000);
      expect(refusalOf(rates, 'a', cost)).not.toBeInstanceOf(MediaError);
    },
  );
  fc.assert(property, { numRuns: 60 });
});

test('memory is bounded, whatever the number of clients; those that came last are known', () => {
  const clock = new FakeClock();
  const rates = new Rates({ requests: 1, windowMs: 60_000 }, partsOf(clock));
  for (let index = 0; index < 100_100; index += 1) rates.charge(`client ${index}`, 1);
  expect(rates.clients).toBe(100_000);
  expect(refusalOf(rates, 'client 100099', 1)).toBeInstanceOf(MediaError);
  expect(refusalOf(rates, 'client 5', 1)).not.toBeInstanceOf(MediaError);
});

test('the log names each client once a window', () => {
  const clock = new FakeClock();
  const log = new RecordedLog();
  const rates = new Rates({ requests: 1, windowMs: 60_000 }, partsOf(clock, log));
  for (const client of ['a', 'b']) {
    for (let request = 0; request < 3; request += 1) refusalOf(rates, client, 1);
  }
  const message = 'a client has had its share of rendering';
  expect(log.entries).toEqual(
    ['a', 'b'].map((client) => ({
      level: 'warn',
      details: { client, requests: 1, windowMs: 60_000 },
      message,
    })),
  );
  clock.advance(60_000);
  refusalOf(rates, 'a', 1);
  refusalOf(rates, 'a', 1);
  expect(log.count(message)).toBe(3);
});
