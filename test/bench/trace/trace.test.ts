import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { assumptions, DAY_S } from '../../../bench/trace/assumptions.ts';
import { generateTrace, type Trace } from '../../../bench/trace/trace.ts';
import { formatTarget, usages } from '../../../bench/trace/usages.ts';
import { parseTarget } from '../../../src/contract/media-request.ts';

const options = { seed: 3, requests: 90_000, days: 9 };
const trace = generateTrace(options);

function originalAt({ catalogue }: Trace, rendering: number) {
  return catalogue.original(catalogue.renderings[rendering]?.original ?? -1);
}

describe('a trace', () => {
  test('is the same for the same seed, and another one for another', () => {
    const digest = ({ renderings, seconds, catalogue }: Trace): string =>
      createHash('sha256')
        .update(renderings)
        .update(seconds)
        .update(JSON.stringify(catalogue.originals))
        .digest('hex');
    expect(digest(generateTrace(options))).toBe(digest(trace));
    expect(digest(generateTrace({ ...options, seed: 4 }))).not.toBe(digest(trace));
  });

  test('has the requests and the days that were asked for, in their order', () => {
    expect(trace.renderings.length).toBeGreaterThanOrEqual(options.requests);
    expect(trace.renderings.length).toBeLessThan(options.requests + 1_000);
    const days = (trace.seconds.at(-1) ?? 0) / DAY_S;
    expect(days).toBeGreaterThan(0.98 * options.days);
    expect(days).toBeLessThan(1.02 * options.days);
    expect(trace.seconds.every((at, index) => at >= (trace.seconds[index - 1] ?? 0))).toBe(true);
  });

  test('comes in bursts: a client asks for many pictures at once', () => {
    const sessions = new Set(trace.seconds).size;
    expect(trace.seconds.length / sessions).toBeGreaterThan(10);
  });

  test('asks for URLs of the contract, each original by its own key', () => {
    const keys = new Map<string, number>();
    for (const { original, ask } of trace.catalogue.renderings.slice(0, 2_000)) {
      const traced = trace.catalogue.original(original);
      const ofKind = Object.values(usages).filter(({ kind }) => kind === traced.kind);
      expect(ofKind.flatMap<string>(({ asks }) => asks)).toContain(ask);
      const target = parseTarget(formatTarget(traced.kind, traced.shape, original, ask));
      if (target.kind !== 'media') throw new Error('Expected media.');
      expect(target.request.resource).toBe(traced.kind);
      expect(keys.get(target.request.originKey) ?? original).toBe(original);
      keys.set(target.request.originKey, original);
    }
    expect(keys.size).toBeGreaterThan(500);
  });

  test('avatars are half of it, and a tenth of them moves', () => {
    const asked = Array.from(trace.renderings, (rendering) => originalAt(trace, rendering));
    const avatars = asked.filter(({ kind }) => kind === 'user avatar');
    expect(avatars.length / asked.length).toBeGreaterThan(0.35);
    expect(avatars.length / asked.length).toBeLessThan(0.6);
    const originals = trace.catalogue.originals.filter(({ kind }) => kind === 'user avatar');
    const moving = originals.filter(({ shape }) => shape.frames > 1);
    expect(moving.length / originals.length).toBeGreaterThan(0.06);
    expect(moving.length / originals.length).toBeLessThan(0.14);
  });

  test('new attachments arrive, and are asked for most while they are young', () => {
    const posted = trace.catalogue.originals.filter(
      ({ kind, createdS }) => kind === 'attachment' && createdS > 0,
    );
    const share = posted.length / trace.renderings.length;
    expect(share).toBeGreaterThan(0.5 * assumptions.uploadsPerRequest);
    expect(share).toBeLessThan(1.5 * assumptions.uploadsPerRequest);

    // Requests for those posted on the first day: on their first, and a week later.
    const requests = { young: 0, old: 0 };
    for (const [index, nowS] of trace.seconds.entries()) {
      const { kind, createdS } = originalAt(trace, trace.renderings[index] ?? 0);
      if (kind !== 'attachment' || createdS <= 0 || createdS > DAY_S) continue;
      const ageDays = (nowS - createdS) / DAY_S;
      if (ageDays < 1) requests.young += 1;
      else if (ageDays >= 7 && ageDays < 8) requests.old += 1;
    }
    expect(requests.young).toBeGreaterThan(8 * requests.old);
    expect(requests.young).toBeLessThan(60 * requests.old);
  });

  test('what is deleted is hardly asked for any more', () => {
    expect(trace.deletions.length).toBeGreaterThan(20);
    const late = trace.seconds.filter(
      (nowS, index) => nowS >= originalAt(trace, trace.renderings[index] ?? 0).deletedS,
    );
    expect(late.length / trace.seconds.length).toBeLessThan(0.005);
    const times = trace.deletions.map(({ seconds }) => seconds);
    expect(times).toEqual(times.toSorted((one, other) => one - other));
  });
});
