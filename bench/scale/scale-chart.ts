import { drawChart, type Panel, type Series } from '../harness/chart.ts';
import { hitRatiosOf, perMillion } from './hit-ratios.ts';
import type { StoreSetup } from './setup.ts';
import type { Simulation } from './simulate.ts';

const GIBIBYTE = 2 ** 30;

/** One per way, and enough for those that there are. */
const WAY_COLOURS = [
  '#2166ac',
  '#8c510a',
  '#b2182b',
  '#67a9cf',
  '#ef8a62',
  '#1b7837',
  '#762a83',
] as const;
const STORE_COLOURS = { none: '#b2182b', filesystem: '#1b7837', s3: '#2166ac' } as const;

/** How hit ratios and CPU change with the memory of one replica, as SVG. */
export function drawMemory(simulations: readonly Simulation[]): string {
  const storeKinds = ['none', 'filesystem', 's3'] as const;
  const lines = (measure: (simulation: Simulation) => number): Series[] =>
    storeKinds.map((kind) => ({
      name: `store ${kind}`,
      colour: STORE_COLOURS[kind],
      isDashed: kind === 'filesystem',
      points: simulations
        .filter(({ setup }) => setup.store.kind === kind)
        .map((simulation) => [simulation.setup.memoryBytes / GIBIBYTE, measure(simulation)]),
    }));
  return drawChart({
    title: 'One replica by its memory',
    xTitle: 'GiB of memory',
    xLeast: 0.01,
    xMost: 100,
    bands: [],
    panels: panels(lines),
  });
}

/** How they change with the number of replicas, by the way requests come to them, as SVG. */
export function drawReplicas(simulations: readonly Simulation[]): string {
  const ways = [...new Set(simulations.map(wayOf))];
  const lines = (measure: (simulation: Simulation) => number): Series[] =>
    ways.map((way, index) => ({
      name: way,
      colour: WAY_COLOURS[index % WAY_COLOURS.length] ?? '#222',
      isDashed: way.includes('random'),
      points: simulations
        .filter((simulation) => wayOf(simulation) === way)
        .map((simulation) => [simulation.setup.replicas, measure(simulation)]),
    }));
  return drawChart({
    title: 'Replicas of 256 MiB, by balancing and store',
    xTitle: 'replicas',
    xLeast: 1,
    xMost: 100,
    bands: [],
    panels: panels(lines),
  });
}

function panels(lines: (measure: (simulation: Simulation) => number) => Series[]): Panel[] {
  return [
    {
      title: 'Answered without a render, of what may be rendered',
      unit: '%',
      scale: 'linear',
      series: lines(({ counts }) => {
        const { memory, heldOriginal } = hitRatiosOf(counts);
        return 100 * (1 - heldOriginal.asked / Math.max(1, memory.asked));
      }),
    },
    {
      title: 'CPU of renders per million requests',
      unit: 'seconds',
      scale: 'linear',
      series: lines(({ counts }) => perMillion(counts.renderCpuMs / 1_000, counts)),
    },
    {
      title: 'Bodies read from the origin per million requests',
      unit: 'reads',
      scale: 'linear',
      series: lines(({ counts }) => perMillion(counts.originReads, counts)),
    },
    {
      title: 'Small reads of the origin per million requests',
      unit: 'reads',
      scale: 'linear',
      series: lines(({ counts }) => perMillion(counts.revalidations, counts)),
    },
  ];
}

function wayOf({ setup }: Simulation): string {
  const names: Readonly<Record<StoreSetup['kind'], string>> = {
    none: '',
    filesystem: ', filesystem',
    s3: ', s3',
  };
  const balancing = setup.balancing === 'random' ? 'at random' : `by ${setup.balancing}`;
  return balancing + names[setup.store.kind];
}
