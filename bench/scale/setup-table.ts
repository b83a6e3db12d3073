import { formatBytes, formatShare, formatTable } from '../harness/markdown.ts';
import { hitRatiosOf, perMillion, type Ratio } from './hit-ratios.ts';
import type { Setup } from './setup.ts';
import type { Simulation } from './simulate.ts';

const HEAD = [
  'Replicas',
  'Balanced by',
  'Memory each',
  'Store',
  'Edge',
  'Edge hits',
  'Memory hits',
  'Store hits',
  'Held originals',
  'Origin reads',
  'Revalidations',
  'Renders',
  'CPU s',
  'Store after',
  'Store a day',
  'Busiest',
];

/** One line per simulation: hit ratios of each tier, work per million requests, bytes of the store. */
export function formatSimulations(simulations: readonly Simulation[], days: number): string {
  const head = HEAD.map((name) => (name === 'Store after' ? `Store after ${days} days` : name));
  return formatTable(head, simulations.map(formatRow));
}

function formatRow({
  setup,
  counts,
  storeBytes,
  storeBytesPerDay,
  busiest,
}: Simulation): readonly string[] {
  const ratios = hitRatiosOf(counts);
  const many = (count: number): string => formatCount(perMillion(count, counts));
  const share = ({ answered, asked }: Ratio): string => formatShare(answered, asked);
  const hasStore = setup.store.kind !== 'none';
  return [
    String(setup.replicas),
    setup.replicas === 1 ? '–' : setup.balancing,
    formatBytes(setup.memoryBytes),
    formatStore(setup),
    formatEdge(setup),
    setup.edge.kind === 'none' ? '–' : share(ratios.edge),
    share(ratios.memory),
    hasStore ? share(ratios.store) : '–',
    share(ratios.heldOriginal),
    many(counts.originReads),
    many(counts.revalidations),
    many(counts.renders),
    many(counts.renderCpuMs / 1_000),
    hasStore ? formatBytes(storeBytes) : '–',
    hasStore ? formatBytes(storeBytesPerDay) : '–',
    setup.replicas === 1 ? '–' : `${busiest.toFixed(2)} ×`,
  ];
}

/** `s3, 30 days`, `filesystem, 20 GiB` or `none`. */
export function formatStore({ store }: Setup): string {
  switch (store.kind) {
    case 'none':
      return 'none';
    case 'filesystem':
      return `filesystem, ${formatBytes(store.maxBytes)}`;
    case 's3':
      return `s3, ${store.maxAgeDays} days`;
  }
}

function formatEdge({ edge }: Setup): string {
  switch (edge.kind) {
    case 'none':
      return 'none';
    case 'lru':
      return formatBytes(edge.maxBytes);
    case 'ratio':
      return `${Math.round(edge.ratio * 100)} % given`;
  }
}

/** Three digits that count, and the thousands apart. */
export function formatCount(value: number): string {
  const rounded = value === 0 ? 0 : Number(value.toPrecision(3));
  return rounded.toLocaleString('en').replaceAll(',', ' ');
}
