import { formatBytes, quantile } from '../harness/report.ts';
import { findChanged } from './good-images.ts';
import { judgeVisit, type Verdict } from './judgement.ts';
import type { LogSummary } from './service-log.ts';
import type { Purpose } from './shot.ts';
import type { Sample, SoakRun } from './soak-run.ts';
import type { Visit } from './visit.ts';

/** One thing that must hold at the end of a run. */
export interface Criterion {
  readonly name: string;
  readonly measured: string;
  readonly demanded: string;
  readonly result: 'holds' | 'broken' | 'not judged';
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

/** Descriptors, threads and workers at rest may differ by so many. */
const HANDLE_TOLERANCE = 6;

/** Share of heavy renders that may be turned away while there is no burst. */
const MAX_REFUSED_SHARE = 0.02;

const PURPOSES: readonly Purpose[] = ['popular image', 'new still', 'new animation', 'hostile'];

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
  return [
    judgeCoverage(run, judged),
    judgeResponses(judged),
    judgeRefusals(judged),
    judgeMemory('memory of the main process', run, ({ main }) => main.residentBytes),
    judgeMemory('memory of all workers', run, ({ workers }) => workers.residentBytes),
    ...judgeHandles(run),
    judgeGoodImages(run),
    {
      name: 'lines in the log without an excuse',
      measured: String(log.unexplained.length),
      demanded: '0 at error or above',
      result: log.unexplained.length === 0 ? 'holds' : 'broken',
    },
    judgeEnding(run),
  ];
}

/** A run in which nothing happened would hold everything else. */
function judgeCoverage({ waves }: SoakRun, judged: readonly JudgedVisit[]): Criterion {
  const renders = PURPOSES.map(
    (purpose) =>
      judged.filter(
        ({ visit }) => visit.purpose === purpose && visit.status === 200 && !visit.isHit,
      ).length,
  );
  const hits = judged.filter(({ visit }) => visit.isHit).length;
  const felt = judged.filter(({ verdict }) => verdict.kind === 'origin').length;
  const harmful = waves.filter(({ kind }) => kind !== 'slow responses').length;
  const isCovered = hits > 0 && renders.every((count) => count > 0) && (felt > 0 || harmful === 0);
  return {
    name: 'something was asked of everything',
    measured: `${hits} hits, ${renders.join(' + ')} rendered, ${felt} failures of the origin`,
    demanded: 'some of each',
    result: isCovered ? 'holds' : 'broken',
  };
}

function judgeResponses(judged: readonly JudgedVisit[]): Criterion {
  const wrong = judged.filter(({ verdict }) => verdict.kind === 'unexpected').length;
  return {
    name: 'unexpected responses',
    measured: `${wrong} of ${judged.length}`,
    demanded: '0',
    result: wrong === 0 ? 'holds' : 'broken',
  };
}

function judgeRefusals(judged: readonly JudgedVisit[]): Criterion {
  const heavy = judged.filter(
    ({ visit, verdict }) => visit.render === 'heavy' && verdict.kind !== 'burst',
  );
  const refused = heavy.filter(({ verdict }) => verdict.kind === 'refused').length;
  return {
    name: 'heavy renders refused without a burst',
    measured: `${refused} of ${heavy.length}`,
    demanded: `at most ${MAX_REFUSED_SHARE * 100} %`,
    result: refused <= heavy.length * MAX_REFUSED_SHARE ? 'holds' : 'broken',
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
    return { name, measured, demanded, result: 'not judged' };
  }
  const growth = final / level - 1;
  const sign = growth < 0 ? '−' : '+';
  const change = `${sign}${Math.abs(growth * 100).toFixed(1)} %`;
  return {
    name,
    measured: `${formatBytes(level)} at minute 5, ${formatBytes(final)} in the last four: ${change}`,
    demanded,
    result: growth <= MAX_GROWTH ? 'holds' : 'broken',
  };
}

function judgeHandles({ atRest: { before, after } }: SoakRun): Criterion[] {
  const numbers = {
    'descriptors at rest': ({ main }: Sample) => main.descriptors,
    'threads at rest': ({ main }: Sample) => main.threads,
    'workers at rest': ({ workers }: Sample) => workers.count,
  };
  return Object.entries(numbers).map(([name, read]) => {
    const [first, last] = [before && read(before), after && read(after)];
    const tolerance = name === 'workers at rest' ? 0 : HANDLE_TOLERANCE;
    const isBack = first !== undefined && last !== undefined && Math.abs(last - first) <= tolerance;
    return {
      name,
      measured: `${first ?? '–'} before, ${last ?? '–'} after`,
      demanded: tolerance === 0 ? 'as many as before' : `no more than ${tolerance} apart`,
      result: isBack ? 'holds' : 'broken',
    };
  });
}

function judgeGoodImages({ goodImages: { before, after } }: SoakRun): Criterion {
  const changed = findChanged(before, after);
  return {
    name: 'good images, rendered anew at the end',
    measured: changed.length === 0 ? `${before.length} as at the start` : changed.join(' '),
    demanded: 'the same bytes as at the start',
    result: changed.length === 0 ? 'holds' : 'broken',
  };
}

function judgeEnding({ earlyEnding, ending }: SoakRun): Criterion {
  const how = `status ${ending.code}, signal ${ending.signal ?? 'none'}`;
  return {
    name: 'the process',
    measured: earlyEnding === undefined ? `lived, then ended with ${how}` : `died with ${how}`,
    demanded: 'lives until SIGTERM, then status 0',
    result: earlyEnding === undefined && ending.code === 0 ? 'holds' : 'broken',
  };
}
