import { formatBytes, quantile } from '../harness/report.ts';
import { isStruck } from './faults/waves.ts';
import { findChanged } from './good-images.ts';
import { judgeVisit, type Verdict } from './judgement.ts';
import type { LogSummary } from './service-log.ts';
import type { Sample, SoakRun } from './soak-run.ts';
import type { Visit } from './visit.ts';

/** One thing that must hold at the end of a run. */
export interface Criterion {
  readonly name: string;
  readonly measured: string;
  readonly demanded: string;
  /** `undefined` where it could not be judged. */
  readonly isHeld: boolean | undefined;
}

/** A visit with its verdict. */
export interface JudgedVisit {
  readonly visit: Visit;
  readonly verdict: Verdict;
}

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

/** Judges every visit of a run. */
export function judgeVisits({ visits, waves, bursts }: SoakRun): readonly JudgedVisit[] {
  return visits.map((visit) => ({ visit, verdict: judgeVisit(visit, { waves, bursts }) }));
}

/** Everything that must hold, and whether it does. */
export function judgeRun(
  run: SoakRun,
  judged: readonly JudgedVisit[],
  log: LogSummary,
): readonly Criterion[] {
  const unexpected = count(judged, ({ verdict }) => verdict.kind === 'unexpected');
  const heavy = judged.filter(
    ({ visit, verdict }) => visit.render === 'heavy' && verdict.kind !== 'burst',
  );
  const refused = count(heavy, ({ verdict }) => verdict.kind === 'refused');
  const { before, after } = run.goodImages;
  const changed = findChanged(before, after);
  const { code, signal } = run.ending;
  const hasDied = run.earlyEnding !== undefined;
  return [
    judgeCoverage(run, judged),
    {
      name: 'unexpected responses',
      measured: `${unexpected} of ${judged.length}`,
      demanded: '0',
      isHeld: unexpected === 0,
    },
    {
      name: 'heavy renders refused without a burst',
      measured: `${refused} of ${heavy.length}`,
      demanded: `at most ${MAX_REFUSED_SHARE * 100} %`,
      isHeld: refused <= heavy.length * MAX_REFUSED_SHARE,
    },
    judgeMemory('memory of the main process', run, ({ main }) => main.residentBytes),
    judgeMemory('memory of all workers', run, ({ workers }) => workers.residentBytes),
    judgeHandles('descriptors at rest', run, HANDLE_TOLERANCE, ({ main }) => main.descriptors),
    judgeHandles('threads at rest', run, HANDLE_TOLERANCE, ({ main }) => main.threads),
    judgeHandles('workers at rest', run, 0, ({ workers }) => workers.count),
    {
      name: 'temporary files at rest',
      measured: run.temporaryFiles.join(' ') || 'none',
      demanded: 'none',
      isHeld: run.temporaryFiles.length === 0,
    },
    {
      name: 'the store of renderings after the load',
      measured: `${run.storedAfterwards} stored`,
      demanded: 'some',
      isHeld: run.storedAfterwards > 0,
    },
    {
      name: 'good images, rendered anew at the end',
      measured: changed.join(' ') || `${before.length} as at the start`,
      demanded: 'the same bytes as at the start',
      isHeld: changed.length === 0,
    },
    {
      name: 'lines in the log without an excuse',
      measured: String(log.unexplained.length),
      demanded: '0 at error or above',
      isHeld: log.unexplained.length === 0,
    },
    {
      name: 'the process',
      measured: `${hasDied ? 'died' : 'lived, then ended'} with status ${code}, signal ${signal ?? 'none'}`,
      demanded: 'lives until SIGTERM, then status 0',
      isHeld: !hasDied && code === 0,
    },
  ];
}

/** A run in which nothing happened would hold everything else. */
function judgeCoverage(
  { waves, killedWorkers }: SoakRun,
  judged: readonly JudgedVisit[],
): Criterion {
  const renders = RENDERED.map((purpose) =>
    count(judged, ({ visit }) => visit.purpose === purpose && visit.status === 200 && !visit.isHit),
  );
  const hits = count(judged, ({ visit }) => visit.isHit);
  const felt = count(judged, ({ verdict }) => verdict.kind === 'origin');
  const isHarmed = waves.some(({ kind }) => isStruck([{ kind, startMs: 0, endMs: 1 }], 0, 1));
  const { bySignal, byKernel } = killedWorkers;
  return {
    name: 'something was asked of everything',
    measured: `${hits} hits, ${renders.join(' + ')} rendered, ${felt} failures of the origin, ${bySignal} + ${byKernel ?? 'no'} workers killed`,
    demanded: 'some of each',
    isHeld:
      hits > 0 &&
      renders.every((some) => some > 0) &&
      (felt > 0 || !isHarmed) &&
      bySignal > 0 &&
      byKernel !== 0,
  };
}

function judgeMemory(
  name: string,
  { samples, loadedMs }: SoakRun,
  read: (sample: Sample) => number,
): Criterion {
  const median = (fromMs: number, toMs: number): number | undefined =>
    quantile(samples.filter(({ atMs }) => atMs >= fromMs && atMs < toMs).map(read), 0.5);
  const level = median(LEVEL_AT_MS - LEVEL_SPAN_MS, LEVEL_AT_MS + LEVEL_SPAN_MS);
  const final = median(loadedMs - FINAL_SPAN_MS, loadedMs);
  const demanded = `at most ${MAX_GROWTH * 100} % above minute 5`;
  const isLong = loadedMs - FINAL_SPAN_MS >= LEVEL_AT_MS + LEVEL_SPAN_MS;
  if (level === undefined || final === undefined || !isLong) {
    const measured = `${formatBytes(final)} at the end of a run too short for this`;
    return { name, measured, demanded, isHeld: undefined };
  }
  const growth = final / level - 1;
  const change = `${growth < 0 ? '−' : '+'}${Math.abs(growth * 100).toFixed(1)} %`;
  const measured = `${formatBytes(level)} at minute 5, ${formatBytes(final)} in the last four: ${change}`;
  return { name, measured, demanded, isHeld: growth <= MAX_GROWTH };
}

function judgeHandles(
  name: string,
  { atRest: { before, after } }: SoakRun,
  tolerance: number,
  read: (sample: Sample) => number,
): Criterion {
  const [first, last] = [before && read(before), after && read(after)];
  return {
    name,
    measured: `${first ?? '–'} before, ${last ?? '–'} after`,
    demanded: tolerance === 0 ? 'as many as before' : `at most ${tolerance} more than before`,
    isHeld: tolerance === 0 ? last === first : (last ?? Infinity) - (first ?? 0) <= tolerance,
  };
}

function count<Item>(items: readonly Item[], isCounted: (item: Item) => boolean): number {
  return items.filter(isCounted).length;
}
