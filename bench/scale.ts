import { parseArgs } from 'node:util';
import { parsePositive, publishReport } from './harness/report.ts';
import { RateModel } from './scale/rates.ts';
import { formatScale } from './scale/report.ts';
import { edgeSetups, memorySetups, type Setup, sizingSetups } from './scale/setups.ts';
import { type Simulation, simulate } from './scale/simulate.ts';
import { createWorkload } from './scale/workload.ts';
import { generateTrace } from './trace/trace.ts';

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
  const run = (setups: readonly Setup[]): Simulation[] =>
    setups.map((setup) => simulate(workload, setup, fromDay));
  const report = formatScale({
    workload,
    command: ['npm run bench:scale --', ...process.argv.slice(2)].join(' '),
    fromDay,
    memory: run(memorySetups(requestsPerDay)),
    edge: run(edgeSetups(requestsPerDay)),
    sizing: run(sizingSetups),
    rates: new RateModel(seed),
  });
  publishReport('scale.md', report);
}

runModel();
