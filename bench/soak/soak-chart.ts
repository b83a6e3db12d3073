import { type Chart, drawChart, type Panel, type Series } from '../harness/chart.ts';
import { quantile } from '../harness/quantile.ts';
import { isDisturbed } from './judgement.ts';
import { LATENCY_CLASSES } from './latency-classes.ts';
import type { Sample } from './sampler.ts';
import type { SoakRun } from './soak-run.ts';
import type { Visit } from './visit.ts';

const MINUTE_MS = 60_000;
const WINDOWS = 60;
const SHORTEST_WINDOW_MS = 5_000;
const MEBIBYTE = 2 ** 20;

/** Draws memory, latencies, answers and handles of a run over its time, as SVG. */
export function drawSoak(run: SoakRun): string {
  const toMinutes = (ms: number): number => ms / MINUTE_MS;
  const spans = (times: readonly { readonly startMs: number; readonly endMs: number }[]) =>
    times.map(({ startMs, endMs }) => [toMinutes(startMs), toMinutes(endMs)] as const);
  const chart: Chart = {
    title: `Soak of ${toMinutes(run.loadedMs).toFixed(1)} minutes, ${run.visits.length} requests`,
    xTitle: 'minutes',
    xMost: toMinutes(run.loadedMs),
    panels: [memoryPanel(run), latencyPanel(run), answersPanel(run), handlesPanel(run)],
    bands: [
      { name: 'origin fails', colour: '#fdecc8', spans: spans(run.waves) },
      { name: 'burst', colour: '#cfe3f5', spans: spans(run.bursts) },
    ],
  };
  return drawChart(chart);
}

function memoryPanel(run: SoakRun): Panel {
  return {
    title: 'Resident memory',
    unit: 'MiB',
    scale: 'linear',
    series: [
      sampled(run, 'main process', '#2166ac', ({ main }) => main.residentBytes / MEBIBYTE),
      sampled(run, 'all workers', '#b2182b', (sample) => sample.workers.residentBytes / MEBIBYTE),
    ],
  };
}

function handlesPanel(run: SoakRun): Panel {
  return {
    title: 'Handles of the main process, and workers',
    unit: 'number',
    scale: 'linear',
    series: [
      sampled(run, 'descriptors', '#2166ac', ({ main }) => main.descriptors),
      sampled(run, 'of these, sockets', '#1b7837', ({ main }) => main.sockets),
      sampled(run, 'threads', '#8c510a', ({ main }) => main.threads),
      sampled(run, 'workers', '#b2182b', ({ workers }) => workers.count),
    ],
  };
}

function latencyPanel(run: SoakRun): Panel {
  const own = run.visits.filter((visit) => !isDisturbed(visit, run));
  const windows = cut(run, own);
  const classes = LATENCY_CLASSES.flatMap(({ name, colour, read }) =>
    [0.5, 0.99].map(
      (share): Series => ({
        name: `${name}, p${share * 100}`,
        colour,
        isDashed: share === 0.5,
        points: windows.map(({ atMs, visits }) => [
          atMs / MINUTE_MS,
          quantile(
            visits.flatMap((visit) => read(visit) ?? []),
            share,
          ),
        ]),
      }),
    ),
  );
  return {
    title: 'Latency (where the origin was well)',
    unit: 'ms, logarithmic',
    scale: 'log',
    series: classes,
  };
}

function answersPanel(run: SoakRun): Panel {
  const windows = cut(run, run.visits);
  const sorts: readonly [string, string, (visit: Visit) => boolean][] = [
    ['2xx', '#1b7837', ({ status = 0 }) => status >= 200 && status < 300],
    ['304', '#2166ac', ({ status }) => status === 304],
    ['4xx', '#8c510a', ({ status = 0 }) => status >= 400 && status < 500],
    ['5xx', '#b2182b', ({ status = 0 }) => status >= 500],
    ['none: client left', '#777777', ({ status }) => status === undefined],
  ];
  return {
    title: 'Answers by status',
    unit: 'per second',
    scale: 'linear',
    series: sorts.map(([name, colour, isOf]) => ({
      name,
      colour,
      points: windows.map(({ atMs, lengthMs, visits }) => [
        atMs / MINUTE_MS,
        (visits.filter(isOf).length * 1000) / lengthMs,
      ]),
    })),
  };
}

function sampled(
  { samples }: SoakRun,
  name: string,
  colour: string,
  read: (sample: Sample) => number,
): Series {
  return { name, colour, points: samples.map((sample) => [sample.atMs / MINUTE_MS, read(sample)]) };
}

/** Cuts the run's time into windows of equal length; a visit belongs to the one in which it ended. */
function cut({ loadedMs }: SoakRun, visits: readonly Visit[]) {
  const count = Math.max(1, Math.min(WINDOWS, Math.floor(loadedMs / SHORTEST_WINDOW_MS)));
  const lengthMs = loadedMs / count;
  const windows = Array.from({ length: count }, (_, index) => ({
    atMs: (index + 0.5) * lengthMs,
    lengthMs,
    visits: [] as Visit[],
  }));
  for (const visit of visits) windows[Math.floor(visit.endedMs / lengthMs)]?.visits.push(visit);
  return windows;
}
