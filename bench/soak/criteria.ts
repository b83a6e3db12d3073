import { type Criterion, formatBytes, quantile } from '../harness/report.ts';
import type { Burst } from './clients.ts';
import { isStruck, type Wave } from './faults/waves.ts';
import { findChanged } from './good-images.ts';
import type { LogSummary } from './service-log.ts';
import type { Sample, SoakRun } from './soak-run.ts';
import type { Visit } from './visit.ts';

/** What is to be thought of a visit. */
export type Verdict =
  | { readonly kind: 'expected' }
  /** The origin was made to fail just then. */
  | { readonly kind: 'origin' }
  /** Too much was asked just then. */
  | { readonly kind: 'burst' }
  /** A heavy render was turned away without a burst: allowed, if it is seldom. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'unexpected'; readonly reason: string };

export interface JudgedVisit extends Visit {
  readonly verdict: Verdict;
}

/** A burst is still felt for so long, in milliseconds: what it left in the queue waits up to 5 s. */
const BURST_SHADOW_MS = 6_000;

/**
 * Memory at this time is what it is compared with at the end: medians of as long a span. Workers come and go
 * with their renders, and swing by a quarter within a minute.
 */
const LEVEL_AT_MS = 5 * 60_000;
const LEVEL_SPAN_MS = 2 * 60_000;
const FINAL_SPAN_MS = 2 * LEVEL_SPAN_MS;
const MAX_GROWTH = 0.1;

/** Descriptors and threads at rest may be so many more. */
const HANDLE_TOLERANCE = 6;

/** Share of heavy renders that may be turned away while there is no burst. */
const MAX_REFUSED_SHARE = 0.02;

const RENDERED = ['popular image', 'new still', 'new animation', 'hostile'];

export function judgeVisits({ visits, waves, bursts }: SoakRun): readonly JudgedVisit[] {
  return visits.map((visit) => ({ ...visit, verdict: judgeVisit(visit, waves, bursts) }));
}

/** Compares a visit with the contract, given what was done to the service meanwhile. */
function judgeVisit(visit: Visit, waves: readonly Wave[], bursts: readonly Burst[]): Verdict {
  const { ending, lie, status, code, failure, render, expected, startedMs, endedMs } = visit;
  const isOriginStruck = visit.needsOrigin && isStruck(waves, startedMs, endedMs);
  const blameOrigin = (reason: string): Verdict =>
    isOriginStruck ? { kind: 'origin' } : { kind: 'unexpected', reason };
  if (lie !== undefined) return { kind: 'unexpected', reason: lie };
  if (ending === 'hung') return { kind: 'unexpected', reason: 'no end' };
  if (ending === 'unanswered') return { kind: 'unexpected', reason: `no response: ${failure}` };
  if (ending === 'broken') return blameOrigin(`broken off: ${failure}`);
  if (status === 502 || (status === 504 && code !== 'TRANSFORM_TIMEOUT')) {
    return blameOrigin(`${status} ${code}`);
  }
  // What waits for a storage that responds late keeps its place for so long.
  if (status === 503 && isOriginStruck) return { kind: 'origin' };
  if (status === undefined || expected.includes(status)) return { kind: 'expected' };
  if (status === 503 && render !== 'none') {
    const isInBurst = bursts.some(
      (burst) => startedMs < burst.endMs + BURST_SHADOW_MS && endedMs > burst.startMs,
    );
    if (isInBurst) return { kind: 'burst' };
    if (render === 'heavy') return { kind: 'refused' };
  }
  return { kind: 'unexpected', reason: `${status} ${code ?? ''}`.trimEnd() };
}

/** Everything that must hold, and whether it does. */
export function judgeRun(
  run: SoakRun,
  judged: readonly JudgedVisit[],
  log: LogSummary,
): readonly Criterion[] {
  const { temporaryFiles, storedAfterwards, atRest, goodImages, ending, earlyEnding } = run;
  const unexpected = count(judged, ({ verdict }) => verdict.kind === 'unexpected');
  const heavy = judged.filter(
    ({ render, verdict }) => render === 'heavy' && verdict.kind !== 'burst',
  );
  const refused = count(heavy, ({ verdict }) => verdict.kind === 'refused');
  const changed = findChanged(goodImages.before, goodImages.after);
  const judgeHandles = (
    what: string,
    tolerance: number,
    read: (of: Sample) => number,
  ): Criterion => {
    const [first, last] = [atRest.before, atRest.after].map((sample) => sample && read(sample));
    return [
      `${what} at rest`,
      tolerance === 0 ? 'as many as before' : `at most ${tolerance} more than before`,
      `${first ?? '–'} before, ${last ?? '–'} after`,
      tolerance === 0 ? last === first : (last ?? Infinity) - (first ?? 0) <= tolerance,
    ];
  };
  return [
    judgeCoverage(run, judged),
    ['unexpected responses', '0', `${unexpected} of ${judged.length}`, unexpected === 0],
    [
      'heavy renders refused without a burst',
      `at most ${MAX_REFUSED_SHARE * 100} %`,
      `${refused} of ${heavy.length}`,
      refused <= heavy.length * MAX_REFUSED_SHARE,
    ],
    judgeMemory('memory of the main process', run, ({ main }) => main.residentBytes),
    judgeMemory('memory of all workers', run, ({ workers }) => workers.residentBytes),
    judgeHandles('descriptors', HANDLE_TOLERANCE, ({ main }) => main.descriptors),
    judgeHandles('threads', HANDLE_TOLERANCE, ({ main }) => main.threads),
    judgeHandles('workers', 0, ({ workers }) => workers.count),
    [
      'temporary files at rest',
      'none',
      temporaryFiles.join(' ') || 'none',
      temporaryFiles.length === 0,
    ],
    [
      'the store of renderings after the load',
      'some',
      `${storedAfterwards} stored`,
      storedAfterwards > 0,
    ],
    [
      'good images, rendered anew at the end',
      'the same bytes as at the start',
      changed.join(' ') || `${goodImages.before.length} as at the start`,
      changed.length === 0,
    ],
    [
      'lines in the log without an excuse',
      '0 at error or above',
      String(log.unexplained.length),
      log.unexplained.length === 0,
    ],
    [
      'the process',
      'lives until SIGTERM, then status 0',
      `${earlyEnding === undefined ? 'lived, then ended' : 'died'} with status ${ending.code}, signal ${ending.signal ?? 'none'}`,
      earlyEnding === undefined && ending.code === 0,
    ],
  ];
}

/** A run in which nothing happened would hold everything else. */
function judgeCoverage(
  { waves, killedWorkers }: SoakRun,
  judged: readonly JudgedVisit[],
): Criterion {
  const renders = RENDERED.map((wanted) =>
    count(judged, ({ purpose, status, isHit }) => purpose === wanted && status === 200 && !isHit),
  );
  const hits = count(judged, ({ isHit }) => isHit);
  const felt = count(judged, ({ verdict }) => verdict.kind === 'origin');
  const isHarmed = waves.some((wave) => isStruck([wave], wave.startMs, wave.endMs));
  const { bySignal, byKernel } = killedWorkers;
  return [
    'something was asked of everything',
    'some of each',
    `${hits} hits, ${renders.join(' + ')} rendered, ${felt} failures of the origin, ${bySignal} + ${byKernel ?? 'no'} workers killed`,
    hits > 0 &&
      renders.every((some) => some > 0) &&
      (felt > 0 || !isHarmed) &&
      bySignal > 0 &&
      byKernel !== 0,
  ];
}

function judgeMemory(
  name: string,
  { samples, beganMs, loadedMs }: SoakRun,
  read: (sample: Sample) => number,
): Criterion {
  const median = (fromMs: number, toMs: number): number | undefined => {
    const within = samples.filter(({ atMs }) => atMs - beganMs >= fromMs && atMs - beganMs < toMs);
    return quantile(within.map(read), 0.5);
  };
  const level = median(LEVEL_AT_MS - LEVEL_SPAN_MS, LEVEL_AT_MS + LEVEL_SPAN_MS);
  const final = median(loadedMs - FINAL_SPAN_MS, loadedMs);
  const demanded = `at most ${MAX_GROWTH * 100} % above minute 5`;
  const isLong = loadedMs - FINAL_SPAN_MS >= LEVEL_AT_MS + LEVEL_SPAN_MS;
  if (level === undefined || final === undefined || !isLong) {
    const measured = `${formatBytes(final)} at the end of a run too short for this`;
    return [name, demanded, measured, undefined];
  }
  const growth = final / level - 1;
  const change = `${growth < 0 ? '−' : '+'}${Math.abs(growth * 100).toFixed(1)} %`;
  const measured = `${formatBytes(level)} at minute 5, ${formatBytes(final)} in the last four: ${change}`;
  return [name, demanded, measured, growth <= MAX_GROWTH];
}

function count<Item>(items: readonly Item[], isCounted: (item: Item) => boolean): number {
  return items.filter(isCounted).length;
}
