import { formatBytes, formatShare, formatTable } from '../harness/markdown.ts';
import { DAY_S } from '../trace/assumptions.ts';
import { hitRatiosOf, type Ratio } from './hit-ratios.ts';
import { formatCount } from './setup-table.ts';
import type { Simulation } from './simulate.ts';

/** What is put on top of the simulation. */
export const margins = {
  /** The busiest hour beside the mean of a day; assumed. */
  peakFactor: 2,
  /** How much of a core is to be used at peak: beyond, waiting grows quickly. */
  utilisation: 0.6,
  /**
   * CPU of the main process, in milliseconds, for a hit in memory and for anything else that reaches a
   * replica: measured by `npm run bench:scale -- --replay`, rounded up. That a result from the store
   * takes as much as a miss is assumed.
   */
  hitCpuMs: 0.2,
  missCpuMs: 3.5,
} as const;

/** What a simulated deployment needs at peak. */
export interface Needs {
  /** At peak, a second. */
  readonly requests: number;
  readonly atReplicas: number;
  readonly renders: number;
  readonly originReads: number;
  readonly smallReads: number;
  /** Cores that render, and that answer, of all replicas. */
  readonly renderCores: number;
  readonly answerCores: number;
  readonly bytesServed: number;
}

/** The formulae of docs/performance.md, "Sizing", on what a simulation counted. */
export function needsOf({ setup, counts }: Simulation): Needs {
  const requests = (setup.requestsPerDay / DAY_S) * margins.peakFactor;
  const perRequest = (count: number): number => (requests * count) / counts.requests;
  const atReplicas = perRequest(counts.requests - counts.tiers.edge);
  const hits = perRequest(counts.tiers.memory);
  const answerMs = hits * margins.hitCpuMs + (atReplicas - hits) * margins.missCpuMs;
  return {
    requests,
    atReplicas,
    renders: perRequest(counts.renders),
    originReads: perRequest(counts.originReads),
    smallReads: perRequest(counts.revalidations),
    renderCores: perRequest(counts.renderCpuMs) / 1_000 / margins.utilisation,
    answerCores: answerMs / 1_000 / margins.utilisation,
    bytesServed: perRequest(counts.bytesServed),
  };
}

/** One line per deployment: what there is, how it is hit, what it takes at peak. */
export function formatSizing(simulations: readonly Simulation[]): string {
  const head = [
    'Requests a day',
    'At peak',
    'Edge cache',
    'Replicas × memory',
    'Edge hits',
    'Memory hits',
    'Store hits',
    'Renders',
    'Cores: render',
    'answer',
    'Origin reads',
    'Small reads',
    'Sent to the edge',
    'Store grows a day',
  ];
  const share = ({ answered, asked }: Ratio): string => formatShare(answered, asked);
  const rows = simulations.map((simulation) => {
    const { setup, counts, storeBytesPerDay } = simulation;
    const needs = needsOf(simulation);
    const ratios = hitRatiosOf(counts);
    return [
      formatCount(setup.requestsPerDay),
      `${formatCount(needs.requests)}/s`,
      setup.edge.kind === 'lru' ? formatBytes(setup.edge.maxBytes) : '–',
      `${setup.replicas} × ${formatBytes(setup.memoryBytes)}`,
      share(ratios.edge),
      share(ratios.memory),
      share(ratios.store),
      `${formatCount(needs.renders)}/s`,
      formatCount(needs.renderCores),
      formatCount(needs.answerCores),
      `${formatCount(needs.originReads)}/s`,
      `${formatCount(needs.smallReads)}/s`,
      `${formatBytes(needs.bytesServed)}/s`,
      formatBytes(storeBytesPerDay),
    ];
  });
  return formatTable(head, rows);
}
