import { readFileSync } from 'node:fs';
import {
  type Criterion,
  formatBytes,
  formatCounts,
  formatCriteria,
  formatMs,
  formatTable,
  joinParts,
  quantile,
} from '../harness/report.ts';
import type { Sample, SoakRun } from './run.ts';
import type { Visit } from './visits.ts';

const MINUTE_MS = 60_000;

/** Memory at minute 5 and at the end are medians, because the workers' memory varies by a quarter within a minute. */
const LEVEL_FROM_MS = 3 * MINUTE_MS;
const LEVEL_TO_MS = 7 * MINUTE_MS;
const FINAL_SPAN_MS = 4 * MINUTE_MS;
const MAX_GROWTH = 0.1;

/** Tolerated growth of descriptors and threads at rest. */
const HANDLE_TOLERANCE = 6;

/** Tolerated fraction of heavy renders that are rejected without a burst. */
const MAX_REJECTED_FRACTION = 0.02;

const RENDERED = ['popular image', 'new still', 'new animation', 'hostile'];
const MAX_EXAMPLES = 40;
const MAX_LINE_LENGTH = 300;

/** Returns the criteria of a run and its report. */
export function evaluateSoak(run: SoakRun) {
  const { visits, troubles, killedWorkers, loadedMs, beganMs } = run;
  const log = readServiceLog(run);
  const unexpected = visits
    .filter(({ verdict }) => verdict === 'unexpected')
    .map(({ startedMs, purpose, method, path, response, reason, tookMs }) => {
      const minute = ((startedMs - beganMs) / MINUTE_MS).toFixed(1);
      return `minute ${minute}, ${purpose}: ${method} ${path}: ${response}, ${reason}, after ${formatMs(tookMs)}`;
    });
  const criteria = createCriteria(run, unexpected, log.unexplained);
  const report = joinParts(
    `# Soak of ${(loadedMs / MINUTE_MS).toFixed(1)} minutes`,
    `${visits.length} requests, ${killedWorkers} workers killed; troubles: ${formatCounts(troubles.names)}.`,
    ...run.missingFaults.map((line) => `Left out: ${line}.`),
    '## Criteria',
    formatCriteria(criteria),
    '## Responses',
    formatResponses(visits),
    '## Log, warnings and above',
    formatCounts(log.kinds),
    ...formatExamples('Unexpected responses', unexpected),
    ...formatExamples('Unexpected lines in the log', log.unexplained),
  );
  return { criteria, report };
}

function createCriteria(
  run: SoakRun,
  unexpected: readonly string[],
  unexplained: readonly string[],
): readonly Criterion[] {
  const { visits, temporaryFiles, storedAfterwards, changedImages, isAlive, end } = run;
  const heavy = visits.filter(({ render, verdict }) => render === 'heavy' && verdict !== 'burst');
  const refused = heavy.filter(({ verdict }) => verdict === 'refused').length;
  const checkHandles = (
    name: 'descriptors' | 'threads' | 'workers',
    tolerance: number,
  ): Criterion => {
    const [before, after] = [run.atRest.before?.[name] ?? 0, run.atRest.after?.[name] ?? Infinity];
    const wanted = `at most ${tolerance} more than before`;
    return [`${name} at rest`, wanted, `${before}, then ${after}`, after - before <= tolerance];
  };
  const checkNone = (name: string, found: readonly string[]): Criterion => {
    const first = found.slice(0, 5).map((line) => line.slice(0, 80));
    return [name, 'none', `${found.length} ${first.join(' ')}`.trim(), found.length === 0];
  };
  return [
    checkCoverage(run),
    checkNone('unexpected responses', unexpected),
    [
      'heavy renders rejected without a burst',
      `at most ${MAX_REJECTED_FRACTION * 100} %`,
      `${refused} of ${heavy.length}`,
      refused <= heavy.length * MAX_REJECTED_FRACTION,
    ],
    checkMemory('memory of the main process', run, ({ memory }) => memory),
    checkMemory('memory of all workers', run, ({ workerMemory }) => workerMemory),
    checkHandles('descriptors', HANDLE_TOLERANCE),
    checkHandles('threads', HANDLE_TOLERANCE),
    checkHandles('workers', 0),
    checkNone('temporary files at rest', temporaryFiles),
    ['renderings stored after the load', 'some', String(storedAfterwards), storedAfterwards > 0],
    checkNone('good images with other bytes than at the start', changedImages),
    checkNone('unexpected lines at level error in the log', unexplained),
    [
      'the process',
      'runs until SIGTERM, then exits with status 0',
      `${isAlive ? 'ran, then exited' : 'exited early'} with status ${end.code}, signal ${end.signal ?? 'none'}`,
      isAlive && end.code === 0,
    ],
  ];
}

/** Requires hits, renders, failures and kills: a run without them would fulfil all other criteria. */
function checkCoverage({ visits, troubles, killedWorkers }: SoakRun): Criterion {
  const count = (isCounted: (visit: Visit) => boolean): number => visits.filter(isCounted).length;
  const renders = RENDERED.map((wanted) =>
    count(({ purpose, response, isHit }) => purpose === wanted && response === '200' && !isHit),
  );
  const hits = count(({ isHit }) => isHit);
  const failed = count(({ verdict }) => verdict === 'originals failed');
  const isFailureDue = troubles.isExcused('originals', 0, Number.POSITIVE_INFINITY);
  return [
    'coverage of the load',
    'some of each',
    `${hits} hits, ${renders.join(' + ')} renders, ${failed} failures of originals, ${killedWorkers} workers killed`,
    [hits, killedWorkers, ...renders, ...(isFailureDue ? [failed] : [])].every((some) => some > 0),
  ];
}

function checkMemory(
  name: string,
  { samples, beganMs, loadedMs }: SoakRun,
  read: (sample: Sample) => number,
): Criterion {
  const median = (fromMs: number, toMs: number): number | undefined => {
    const within = samples.filter(({ atMs }) => atMs - beganMs >= fromMs && atMs - beganMs < toMs);
    return quantile(within.map(read), 0.5);
  };
  const level = median(LEVEL_FROM_MS, LEVEL_TO_MS);
  const final = median(loadedMs - FINAL_SPAN_MS, loadedMs);
  const wanted = `at most ${MAX_GROWTH * 100} % above minute 5`;
  const isLong = loadedMs - FINAL_SPAN_MS >= LEVEL_TO_MS;
  if (level === undefined || final === undefined || !isLong) {
    return [name, wanted, `${formatBytes(final)}; the run is too short`, undefined];
  }
  const change = `${((final / level - 1) * 100).toFixed(1)} % more`;
  const measured = `${formatBytes(level)}, then ${formatBytes(final)}: ${change}`;
  return [name, wanted, measured, final / level - 1 <= MAX_GROWTH];
}

function formatResponses(visits: readonly Visit[]): string {
  const rows = [...new Set(visits.map(({ purpose }) => purpose))].sort().map((wanted) => {
    const own = visits.filter(({ purpose }) => purpose === wanted);
    return [
      wanted,
      own.length,
      formatCounts(own.map(({ response }) => response || 'none')),
      own.filter(({ isHit }) => isHit).length,
      formatCounts(own.map(({ verdict }) => verdict)),
    ];
  });
  return formatTable(['Request', 'Count', 'Responses', 'Hits', 'Verdicts'], rows);
}

function formatExamples(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  const shown = lines.slice(0, MAX_EXAMPLES).map((line) => line.slice(0, MAX_LINE_LENGTH));
  return [`## ${title}`, `\`\`\`\n${shown.join('\n')}\n\`\`\``];
}

/** Names of pino's levels. */
const LEVELS: Readonly<Record<number, string>> = { 40: 'warn', 50: 'error', 60: 'fatal' };

/** Fields of a log line that the soak reads. */
interface LogLine {
  readonly level: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly msg?: string;
  readonly code?: string;
  /** Set if the storage failed. */
  readonly storage?: string;
}

/** Reads warnings and errors; an error is expected if originals were made to fail at the time. */
function readServiceLog({ logFile, troubles }: SoakRun) {
  const kinds: string[] = [];
  const unexplained: string[] = [];
  const isExplained = ({ code, storage, time }: LogLine): boolean =>
    (code === 'ORIGIN_ERROR' || code === 'ORIGIN_TIMEOUT' || storage !== undefined) &&
    troubles.isExcused('originals', time - 1, time + 1);
  for (const text of readFileSync(logFile, 'utf8').split('\n').filter(Boolean)) {
    const line = text.startsWith('{') ? (JSON.parse(text) as LogLine) : undefined;
    const level = line === undefined ? 'not a log line' : LEVELS[line.level];
    if (level === undefined) continue;
    kinds.push([level, line?.msg, line?.code].filter(Boolean).join(', '));
    if (line === undefined || (line.level >= 50 && !isExplained(line))) unexplained.push(text);
  }
  return { kinds, unexplained };
}
