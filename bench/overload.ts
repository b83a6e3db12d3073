import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { parsePositive, publishReport } from './harness/report.ts';
import { createCostlyExperiment, createFloodExperiment } from './overload/experiments.ts';
import { formatRun, judgeRun } from './overload/report.ts';
import { runExperiment } from './overload/run.ts';

/* `npm run bench:overload`: see bench/README.md. */

const { values } = parseArgs({
  options: {
    /** Length of a phase. */
    seconds: { type: 'string', default: '15' },
    rounds: { type: 'string', default: '2' },
    workers: { type: 'string', default: String(availableParallelism()) },
    /** Animations arrive at so many times the capacity; may be given several times. */
    factor: { type: 'string', multiple: true, default: ['1', '5', '20'] },
    /** Whether a few originals that take as long as a render may replace the many animations. */
    costly: { type: 'boolean', default: false },
  },
});
const options = {
  phaseMs: parsePositive('seconds', values.seconds) * 1000,
  rounds: parsePositive('rounds', values.rounds),
  workers: parsePositive('workers', values.workers),
};
const factors = values.factor.map((factor) => parsePositive('factor', factor));
const experiment = values.costly
  ? createCostlyExperiment()
  : createFloodExperiment(factors.sort((one, other) => one - other));
const run = await runExperiment(experiment, options);
publishReport(values.costly ? 'costly.md' : 'overload.md', formatRun(run));
process.exitCode = judgeRun(run).every(([, , , isReached]) => isReached) ? 0 : 1;
