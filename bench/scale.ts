import { parseArgs } from 'node:util';
import { parsePositive, publishReport } from './harness/report.ts';
import { createRateModel } from './scale/rates.ts';
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
const number = (name: keyof typeof values): number => parsePositive(name, values[name]);

/** `npm run bench:scale -- --requests 1500000 --days 9 --requests-per-day 10000000`: see docs/performance.md. */
function runModel(): void {
  const [seed, days] = [number('seed'), number('days')];
  const requestsPerDay = number('requests-per-day');
  // Two thirds of the time to fill the caches.
  const fromDay = Math.floor((days * 2) / 3);
  const workload = createWorkload(generateTrace({ seed, requests: number('requests'), days }));
  const run = (setups: readonly Setup[]): Simulation[] =>
    setups.map((setup) => simulate(workload, setup, fromDay));
  const simulations = {
    memory: run(memorySetups(requestsPerDay)),
    edge: run(edgeSetups(requestsPerDay)),
    sizing: run(sizingSetups),
  };
  const command = ['npm run bench:scale --', ...process.argv.slice(2)].join(' ');
  const rates = createRateModel(seed);
  publishReport('scale.md', formatScale(command, workload, fromDay, simulations, rates));
}

runModel();
