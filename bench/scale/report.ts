import { formatBytes, formatShare, formatTable, joinParts } from '../harness/report.ts';
import { DAY_S } from '../trace/assumptions.ts';
import { contentKinds } from '../trace/shapes.ts';
import { type RateModel, rateCases } from './rates.ts';
import { BUCKET } from './setups.ts';
import type { Counts, Simulation } from './simulate.ts';
import type { Workload } from './workload.ts';

/** What is put on top of the simulation. */
const MARGINS = {
  /** The busiest hour beside the mean of a day; assumed. */
  peakFactor: 2,
  /** How much of a core is to be used at peak: beyond, waiting grows quickly. */
  utilisation: 0.6,
  /**
   * CPU of the main process, in milliseconds, for a hit in memory and for anything else that reaches a
   * replica: measured, and rounded up. That a result from the store takes as much as a miss is assumed.
   */
  hitCpuMs: 0.2,
  missCpuMs: 3.5,
} as const;

/** A column: its heading, and what a simulation has in it. */
type Columns = Readonly<Record<string, (simulation: Simulation) => string>>;

/** Hit ratios as the formulae of docs/performance.md take them: each of what the tiers before it have left. */
const hitRatios = {
  'Edge hits': ({ counts, setup }) =>
    setup.edgeBytes === 0 ? '–' : formatShare(counts.tiers.edge, counts.requests),
  'Memory hits': ({ counts }) => formatShare(counts.tiers.memory, countTransforms(counts)),
  'Store hits': ({ counts, setup }) => {
    const beyondMemory = countTransforms(counts) - counts.tiers.memory;
    return setup.storeBytes === 0 ? '–' : formatShare(counts.tiers.store, beyondMemory);
  },
  'Held originals': ({ counts: { tiers, ...counts } }) => {
    const rest = countTransforms({ ...counts, tiers }) - tiers.memory - tiers.store;
    return formatShare(tiers.heldOriginal, rest);
  },
} satisfies Columns;

const setupColumns: Columns = {
  Memory: ({ setup }) => formatBytes(setup.memoryBytes),
  Store: ({ setup: { storeBytes } }) => {
    if (storeBytes === 0) return 'none';
    return storeBytes === BUCKET ? 's3' : `filesystem, ${formatBytes(storeBytes)}`;
  },
  Edge: ({ setup }) => formatBytes(setup.edgeBytes),
  ...hitRatios,
  'Origin reads': ({ counts }) => perMillion(counts.originReads, counts),
  Revalidations: ({ counts }) => perMillion(counts.revalidations, counts),
  Renders: ({ counts }) => perMillion(counts.renders, counts),
  'CPU s': ({ counts }) => perMillion(counts.renderCpuMs / 1_000, counts),
  'Store after all days': ({ storeBytes }) => (storeBytes === 0 ? '–' : formatBytes(storeBytes)),
  'Store a day': ({ storeBytesPerDay, storeBytes }) =>
    storeBytes === 0 ? '–' : formatBytes(storeBytesPerDay),
};

/** The formulae of docs/performance.md, "Sizing", on what a simulation counted: at peak, a second. */
const sizingColumns: Columns = {
  'Requests a day': ({ setup }) => formatCount(setup.requestsPerDay),
  'At peak': (simulation) => atPeak(simulation, simulation.counts.requests),
  'Edge cache': ({ setup }) => formatBytes(setup.edgeBytes),
  'Replicas × memory': ({ setup }) => `${setup.replicas} × ${formatBytes(setup.memoryBytes)}`,
  'Edge hits': hitRatios['Edge hits'],
  'Memory hits': hitRatios['Memory hits'],
  'Store hits': hitRatios['Store hits'],
  Renders: (simulation) => atPeak(simulation, simulation.counts.renders),
  'Cores: render': (simulation) => cores(simulation, simulation.counts.renderCpuMs),
  'the rest': (simulation) => {
    const { requests, tiers } = simulation.counts;
    const misses = requests - tiers.edge - tiers.memory;
    const { hitCpuMs, missCpuMs } = MARGINS;
    return cores(simulation, tiers.memory * hitCpuMs + misses * missCpuMs);
  },
  'Origin reads': (simulation) => atPeak(simulation, simulation.counts.originReads),
  'Small reads': (simulation) => atPeak(simulation, simulation.counts.revalidations),
  'Sent to the edge': (simulation) =>
    atPeak(simulation, simulation.counts.bytesServed, formatBytes),
  'Store grows a day': ({ storeBytesPerDay }) => formatBytes(storeBytesPerDay),
};

/** @param simulations what they are to show, and what came of them */
export function formatScale(
  command: string,
  workload: Workload,
  fromDay: number,
  simulations: Readonly<Record<'memory' | 'edge' | 'sizing', readonly Simulation[]>>,
  rates: RateModel,
): string {
  const { days } = workload.trace.options;
  return joinParts(
    '# Scale model',
    `\`${command}\`. ${days} days, of which those after the first ${fromDay} are counted. ` +
      'Hit ratios are of what reaches a tier; origin reads, revalidations (small reads), renders and their ' +
      'CPU seconds are per million requests of clients.',
    '## The trace',
    formatWorkload(workload),
    '## Memory and store',
    formatSimulations(setupColumns, simulations.memory),
    '## A caching proxy in front',
    formatSimulations(setupColumns, simulations.edge),
    '## Sizing',
    `At peak, ${MARGINS.peakFactor} times the mean; cores at ${MARGINS.utilisation * 100} % of use, ` +
      `${MARGINS.hitCpuMs} ms of the main process for a hit, ${MARGINS.missCpuMs} ms for any other response. Balanced by path, results in a bucket.`,
    formatSimulations(sizingColumns, simulations.sizing),
    '## Rates',
    'People who start the client, and open six channels of the busiest guild within a minute, on a cold cache; and a ' +
      'scraper, which asks for all sizes of all emojis as fast as it is served.',
    formatRates(rates),
  );
}

function formatRates(model: RateModel): string {
  const rows = rateCases.map((rateCase) => {
    const { requests, slowness } = rateCase;
    const outcome = model(rateCase);
    const { people, limitedPeople, mostUnits, scraperLimitedAfterS, scraperRefusedShare } = outcome;
    return [
      String(requests),
      `${slowness} ×`,
      formatShare(limitedPeople, people),
      formatCount(mostUnits),
      `${formatCount(scraperLimitedAfterS)} s`,
      formatShare(scraperRefusedShare, 1),
    ];
  });
  const head = [
    'RATE_LIMIT_REQUESTS, 60 s',
    'Renders take, of the estimate',
    'People limited',
    'Most of one person',
    'Scraper limited after',
    'Scraper refused, 2 min',
  ];
  return formatTable(head, rows);
}

function formatSimulations(columns: Columns, simulations: readonly Simulation[]): string {
  const rows = simulations.map((simulation) =>
    Object.values(columns).map((format) => format(simulation)),
  );
  return formatTable(Object.keys(columns), rows);
}

function formatWorkload({ trace, originals }: Workload): string {
  const { catalogue, renderings } = trace;
  const rows = contentKinds.map((kind) => {
    const isOfKind = (rendering: number): boolean =>
      catalogue.originals[originals[rendering] ?? 0]?.kind === kind;
    return [
      kind,
      formatShare(renderings.filter(isOfKind).length, renderings.length),
      formatCount(catalogue.originals.filter((original) => original.kind === kind).length),
      formatCount(originals.filter((_, rendering) => isOfKind(rendering)).length),
    ];
  });
  const head = ['Kind', 'Requests', 'Originals', 'Renderings'];
  return `${formatCount(renderings.length)} requests, ${trace.deletions.length} deletions, seed ${trace.options.seed}.\n\n${formatTable(head, rows)}`;
}

/** Requests that reach a replica and may be rendered. */
function countTransforms({ requests, tiers }: Counts): number {
  return requests - tiers.edge - tiers.streamed - tiers.missing;
}

function perMillion(count: number, { requests }: Counts): string {
  return formatCount((count * 1e6) / Math.max(1, requests));
}

function atPeak(simulation: Simulation, count: number, format = formatCount): string {
  return `${format(perSecondAtPeak(simulation, count))}/s`;
}

function cores(simulation: Simulation, cpuMs: number): string {
  return formatCount(perSecondAtPeak(simulation, cpuMs) / 1_000 / MARGINS.utilisation);
}

function perSecondAtPeak({ setup, counts }: Simulation, count: number): number {
  const requestsPerSecond = (setup.requestsPerDay / DAY_S) * MARGINS.peakFactor;
  return (requestsPerSecond * count) / counts.requests;
}

/** Three digits that count, and the thousands apart. */
function formatCount(value: number): string {
  const rounded = value === 0 ? 0 : Number(value.toPrecision(3));
  return rounded.toLocaleString('en').replaceAll(',', ' ');
}
