import { parseArgs } from 'node:util';
import { parsePositive, publishReport } from './harness/report.ts';
import { formatScale } from './scale/report.ts';
import {
  BUCKET_SETUP,
  edgeSetups,
  memorySetups,
  type Setup,
  sizingSetups,
} from './scale/setups.ts';
import { type Simulation, simulate } from './scale/simulate.ts';
import { createWorkload, type Workload } from './scale/workload.ts';
import { generateTrace } from './trace/trace.ts';

/** The smaller models of the check are so many times smaller. */
const CHECK_RATIOS = [4, 16];

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '1500000' },
    days: { type: 'string', default: '9' },
    'requests-per-day': { type: 'string', default: '10000000' },
    seed: { type: 'string', default: '1' },
  },
});

/** `npm run bench:scale -- --requests 1500000 --days 9 --requests-per-day 10000000`: see docs/performance.md. */
function runModel(): void {
  const seed = parsePositive('seed', values.seed);
  const days = parsePositive('days', values.days);
  const requests = parsePositive('requests', values.requests);
  const requestsPerDay = parsePositive('requests-per-day', values['requests-per-day']);
  // Two thirds of the time to fill the caches.
  const fromDay = Math.floor((days * 2) / 3);
  const workload = createWorkload(generateTrace({ seed, requests, days }));
  const smaller = CHECK_RATIOS.map((ratio) =>
    createWorkload(generateTrace({ seed, requests: Math.ceil(requests / ratio), days })),
  );
  const run = (of: Workload, setups: readonly Setup[]): Simulation[] =>
    setups.map((setup) => simulate(of, setup, fromDay));
  const checked: Setup = { ...BUCKET_SETUP, requestsPerDay };
  const report = formatScale({
    workload,
    command: ['npm run bench:scale --', ...process.argv.slice(2)].join(' '),
    fromDay,
    memory: run(workload, memorySetups(requestsPerDay)),
    edge: run(workload, edgeSetups(requestsPerDay)),
    sizing: run(workload, sizingSetups),
    check: [workload, ...smaller].flatMap((of) => run(of, [checked])),
  });
  publishReport('scale.md', report);
}

runModel();
