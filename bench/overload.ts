import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { parsePositive, publishReport } from './harness/report.ts';
import { formatCostly, judgeCostly, runCostly } from './overload/costly.ts';
import { runOverload } from './overload/overload-run.ts';
import { formatOverload, judgeOverload } from './overload/report.ts';

/**
 * `npm run bench:overload -- --seconds 15 --rounds 2 --factor 5 --factor 20`, or `-- --costly --seconds 40`: see
 * docs/performance.md.
 */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '15' },
      rounds: { type: 'string', default: '2' },
      /** One or several. */
      factor: { type: 'string', multiple: true, default: ['1', '5', '20'] },
      workers: { type: 'string', default: String(availableParallelism()) },
      /** Originals that take as long as a render may, in place of many animations. */
      costly: { type: 'boolean', default: false },
    },
  });
  const common = {
    phaseMs: parsePositive('seconds', values.seconds) * 1000,
    rounds: parsePositive('rounds', values.rounds),
    workers: parsePositive('workers', values.workers),
  };
  if (values.costly) {
    const run = await runCostly(common);
    publishReport('costly.md', formatCostly(run));
    return judgeCostly(run).every(([, , , isReached]) => isReached) ? 0 : 1;
  }
  const factors = values.factor
    .map((factor) => parsePositive('factor', factor))
    .sort((one, other) => one - other);
  const run = await runOverload({ ...common, factors });
  publishReport('overload.md', formatOverload(run));
  return judgeOverload(run).every(([, , , isReached]) => isReached) ? 0 : 1;
}

process.exitCode = await main();
