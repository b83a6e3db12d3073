import { describe, expect, test } from 'vitest';
import type { Answer } from '../../../bench/harness/load.ts';
import type { OverloadRun, Phase } from '../../../bench/overload/measurements.ts';
import { formatOverload, judgeOverload } from '../../../bench/overload/report.ts';

const hit: Answer = {
  startedMs: 0,
  totalMs: 3,
  status: 200,
  isHit: true,
  retryAfterSeconds: undefined,
};
const refusal: Answer = { ...hit, totalMs: 1, status: 503, isHit: false, retryAfterSeconds: 1 };

function load(answers: readonly Answer[]) {
  return { answers, latenessMs: [0], mostInFlight: 1 };
}

/** A phase in which all goes well but what is said. */
function phase(factor: number, hits: readonly Answer[]): Phase {
  return {
    factor,
    lengthMs: 1_000,
    hits: load(hits),
    light: [{ ...hit, isHit: false }],
    heavy: factor === 0 ? undefined : load([refusal]),
    mainPeakBytes: 0,
    cpu: { main: 0, workers: 0, generators: 0, others: 0 },
  };
}

function runOf(hits: readonly Answer[]): OverloadRun {
  return {
    options: { phaseMs: 1_000, rounds: 1, workers: 2, factors: [20], logFile: '' },
    isHitClientPreferred: true,
    quietHits: load([hit]),
    heavyCapacityPerSecond: 1,
    heavyAlone: [hit],
    phases: [phase(0, [hit]), phase(20, hits)],
  };
}

const hits = (count: number): Answer[] => Array<Answer>(count).fill(hit);

describe('the aim for hits', () => {
  const judge = (answers: readonly Answer[]) => judgeOverload(runOf(answers))[0];

  test('is reached where all of them are hits, and fast', () => {
    expect(judge(hits(50))).toEqual({
      name: 'p99 of hits under overload',
      aim: 'under 20 ms, all of them 200 from memory',
      measured: '3.0 ms',
      isReached: true,
    });
  });

  test('is missed where they are slow', () => {
    expect(judge(hits(50).map((one) => ({ ...one, totalMs: 20 })))?.isReached).toBe(false);
  });

  test.each([
    ['refused, and fast', refusal, '1 of 1000 was 503'],
    ['rendered anew, and fast', { ...hit, isHit: false }, '1 of 1000 was 200, and no hit'],
    ['not answered', { ...hit, status: 0, isHit: false }, '1 of 1000 was not answered'],
  ])('is missed where one was %s, and says why', (_, answer, why) => {
    const aim = judge([...hits(999), answer]);
    expect(aim?.isReached).toBe(false);
    expect(aim?.measured).toBe(`3.0 ms, but ${why}`);
  });

  test('is missed where there was none', () => {
    expect(judge([])).toMatchObject({ isReached: false });
  });

  test('says all of it in the report', () => {
    const report = formatOverload(runOf([...hits(8), refusal, refusal]), [1_024]);
    expect(report).toContain(
      '| p99 of hits under overload | under 20 ms, all of them 200 from memory | 3.0 ms, but 2 of 10 were 503 | missed |',
    );
  });
});
