import { expect, test } from 'vitest';
import type { LoadResponse } from '../../../bench/harness/load.ts';
import type { OverloadRun, Phase } from '../../../bench/overload/overload-run.ts';
import { formatOverload } from '../../../bench/overload/report.ts';

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

test.each([
  ['all of them are hits, and fast', hits(50), '3.0 ms', 'reached'],
  ['they are slow', hits(50).map((one) => ({ ...one, totalMs: 20 })), '20 ms', 'missed'],
  [
    'some were refused, and fast',
    [...hits(8), refusal, refusal],
    '3.0 ms, but of 10: 503 × 2',
    'missed',
  ],
  [
    'one was rendered anew, and fast',
    [...hits(999), { ...hit, isHit: false }],
    '3.0 ms, but of 1000: 200, and no hit × 1',
    'missed',
  ],
  [
    'one is without a response',
    [...hits(999), { ...hit, status: 0, isHit: false }],
    '3.0 ms, but of 1000: no response × 1',
    'missed',
  ],
  ['there was none', [], '–', 'missed'],
])('the aim for hits, where %s', (_, responses, measured, result) => {
  expect(formatOverload(runOf(responses))).toContain(
    `| p99 of hits under overload | under 20 ms, all of them 200 from memory | ${measured} | ${result} |`,
  );
});
