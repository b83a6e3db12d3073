import { describe, expect, test } from 'vitest';
import type { LoadResponse } from '../../../bench/harness/load.ts';
import type { OverloadRun, Phase } from '../../../bench/overload/overload-run.ts';
import { formatOverload, judgeOverload } from '../../../bench/overload/report.ts';

const hit: LoadResponse = {
  startedMs: 0,
  totalMs: 3,
  status: 200,
  isHit: true,
  retryAfterSeconds: undefined,
  bytes: 1,
};
const refusal: LoadResponse = {
  ...hit,
  totalMs: 1,
  status: 503,
  isHit: false,
  retryAfterSeconds: 1,
};

function load(responses: readonly LoadResponse[]) {
  return { responses, seconds: 1, latenessMs: [0] };
}

/** A phase in which all goes well but what is said. */
function phase(factor: number, hits: readonly LoadResponse[]): Phase {
  return {
    factor,
    hits: load(hits),
    light: [{ ...hit, isHit: false }],
    flood: factor === 0 ? undefined : load([refusal]),
    othersShare: 0,
  };
}

function runOf(hits: readonly LoadResponse[]): OverloadRun {
  return {
    options: { phaseMs: 1_000, rounds: 1, workers: 2, factors: [20] },
    isHitClientPreferred: true,
    capacity: { perSecond: 1, responses: [hit] },
    animationBytes: [1_024],
    phases: [phase(0, [hit]), phase(20, hits)],
  };
}

const hits = (count: number): LoadResponse[] => Array<LoadResponse>(count).fill(hit);

describe('the aim for hits', () => {
  const judge = (responses: readonly LoadResponse[]) => judgeOverload(runOf(responses))[0];

  test('is reached where all of them are hits, and fast', () => {
    expect(judge(hits(50))).toEqual([
      'p99 of hits under overload',
      'under 20 ms, all of them 200 from memory',
      '3.0 ms',
      true,
    ]);
  });

  test('is missed where they are slow', () => {
    expect(judge(hits(50).map((one) => ({ ...one, totalMs: 20 })))?.at(-1)).toBe(false);
  });

  test.each([
    ['refused, and fast', refusal, '503 × 1'],
    ['rendered anew, and fast', { ...hit, isHit: false }, '200, and no hit × 1'],
    ['without a response', { ...hit, status: 0, isHit: false }, 'no response × 1'],
  ])('is missed where one was %s, and says why', (_, response, why) => {
    const [, , measured, isReached] = judge([...hits(999), response]) ?? [];
    expect(isReached).toBe(false);
    expect(measured).toBe(`3.0 ms, but of 1000: ${why}`);
  });

  test('is missed where there was none', () => {
    expect(judge([])?.at(-1)).toBe(false);
  });

  test('says all of it in the report', () => {
    const report = formatOverload(runOf([...hits(8), refusal, refusal]));
    expect(report).toContain(
      '| p99 of hits under overload | under 20 ms, all of them 200 from memory | 3.0 ms, but of 10: 503 × 2 | missed |',
    );
  });
});
