import { formatBytes, formatShare, formatTable } from '../harness/markdown.ts';
import { contentKinds } from '../trace/shapes.ts';
import { hitRatiosOf } from './hit-ratios.ts';
import type { Replay } from './replay.ts';
import { formatCount, formatSimulations } from './setup-table.ts';
import type { Simulation } from './simulate.ts';
import { formatSizing, margins } from './sizing.ts';
import type { Workload } from './workload.ts';

/** All simulations of a run. */
export interface ScaleRun {
  readonly workload: Workload;
  readonly command: string;
  readonly fromDay: number;
  readonly memory: readonly Simulation[];
  readonly replicas: readonly Simulation[];
  readonly edge: readonly Simulation[];
  readonly sizing: readonly Simulation[];
  /** The same setup in models of several sizes: they should agree. */
  readonly check: readonly Simulation[];
}

/** The whole report, in Markdown. */
export function formatScale(run: ScaleRun): string {
  const { options } = run.workload.trace;
  const tables = (simulations: readonly Simulation[]): string =>
    formatSimulations(simulations, options.days);
  return `${[
    '# Scale model',
    `\`${run.command}\`. ${options.days} days, of which those after the first ${run.fromDay} are counted. ` +
      'Hit ratios are of what reaches a tier; origin reads, revalidations (small reads), renders and their ' +
      'CPU seconds are per million requests of clients; the store is that of all replicas together.',
    '## The trace',
    formatWorkload(run.workload),
    '## Memory and store: one replica',
    tables(run.memory),
    '## Replicas and balancing: 256 MiB each',
    tables(run.replicas),
    '## A caching proxy in front',
    tables(run.edge),
    '## Sizing',
    `At peak, ${margins.peakFactor} times the mean; cores at ${margins.utilisation * 100} % of use, ` +
      `${margins.hitCpuMs} ms of the main process for a hit, ${margins.missCpuMs} ms for any other answer. Balanced by path, results in a bucket.`,
    formatSizing(run.sizing),
    '## Does the scale matter?',
    'The same setup in models of several sizes.',
    formatCheck(run.check),
  ].join('\n\n')}\n`;
}

function formatWorkload({ trace, facts, originals }: Workload): string {
  const rows = contentKinds.map((kind) => {
    const isOfKind = (rendering: number): boolean =>
      trace.catalogue.originals[originals[rendering] ?? 0]?.kind === kind;
    const asked = trace.renderings.filter(isOfKind);
    const distinct = facts.filter((_, rendering) => isOfKind(rendering));
    const mean = (values: readonly number[]): number =>
      values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
    return [
      kind,
      formatShare(asked.length, trace.renderings.length),
      formatCount(trace.catalogue.originals.filter((original) => original.kind === kind).length),
      formatCount(distinct.length),
      formatBytes(mean(distinct.map(({ bytes }) => bytes))),
      `${formatCount(mean(distinct.filter(({ work }) => work === 'render').map(({ cpuMs }) => cpuMs)))} ms`,
    ];
  });
  const head = ['Kind', 'Requests', 'Originals', 'Renderings', 'Mean size', 'Mean render'];
  return `${formatCount(trace.renderings.length)} requests, ${trace.deletions.length} deletions, seed ${trace.options.seed}.\n\n${formatTable(head, rows)}`;
}

function formatCheck(simulations: readonly Simulation[]): string {
  return formatTable(
    ['Scale', 'Memory hits', 'Store hits', 'Renders per million', 'CPU s per million'],
    simulations.map(({ scale, counts }) => {
      const { memory, store } = hitRatiosOf(counts);
      return [
        `1 : ${formatCount(scale)}`,
        formatShare(memory.answered, memory.asked),
        formatShare(store.answered, store.asked),
        formatCount((counts.renders * 1e6) / counts.requests),
        formatCount((counts.renderCpuMs * 1e3) / counts.requests),
      ];
    }),
  );
}

/** The comparison of the model with the service, in Markdown. */
export function formatReplay(replay: Replay, command: string): string {
  const head = [
    'Memory',
    'Store',
    'Requests',
    'Hits',
    'Foreseen',
    'With the real bytes',
    'From the store',
    'Foreseen',
    'Origin reads',
    'Foreseen',
    'CPU s of workers',
    'Foreseen',
    'CPU of main per request',
  ];
  const rows = replay.runs.map((run) => [
    formatBytes(run.memoryBytes),
    run.hasStore ? 'a folder' : 'none',
    run.requests,
    formatShare(run.hits, run.requests),
    formatForecast(run.hits, run.forecast.hits, run.requests),
    formatForecast(run.hits, run.forecastOfRealBytes.hits, run.requests),
    formatShare(run.storeHits, run.requests),
    formatForecast(run.storeHits, run.forecastOfRealBytes.storeHits, run.requests),
    run.originReads,
    run.forecastOfRealBytes.originReads,
    run.cpuSeconds.workers.toFixed(1),
    run.forecast.renderCpuSeconds.toFixed(1),
    `${((run.cpuSeconds.main * 1_000) / run.requests).toFixed(2)} ms`,
  ]);
  return `${[
    '# The scale model and the service',
    `\`${command}\`. The same trace over the fixtures, sent to the service one request after the other, and simulated.`,
    formatTable(head, rows),
    `${replay.renderings} renderings: ${formatBytes(replay.realBytes)}, by the table ${formatBytes(replay.tableBytes)}. ` +
      `A hit of a small picture takes ${replay.hitCpuMs.toFixed(2)} ms of the main process.`,
  ].join('\n\n')}\n`;
}

function formatForecast(measured: number, foreseen: number, requests: number): string {
  const points = ((foreseen - measured) * 100) / requests;
  return `${formatShare(foreseen, requests)} (${points < 0 ? '−' : '+'}${Math.abs(points).toFixed(1)})`;
}
