import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import {
  formatCriteria,
  formatMs,
  formatPercent,
  formatTable,
  joinParts,
  parsePositive,
  publishReport,
  quantile,
} from './harness/report.ts';
import {
  costlyOriginals,
  findResponses,
  manyAnimations,
  type Phase,
  type Sort,
  timeOf,
} from './overload/experiments.ts';
import { ROUNDS, runExperiment } from './overload/run.ts';

/* `npm run bench:overload`: see bench/README.md. */

const { values } = parseArgs({
  options: {
    /** Duration of a phase. */
    seconds: { type: 'string', default: '15' },
    /** Whether the flood is a few originals that render until the timeout, instead of many animations. */
    costly: { type: 'boolean', default: false },
  },
});
const experiment = values.costly ? costlyOriginals : manyAnimations;
const seconds = parsePositive('seconds', values.seconds);
const workers = availableParallelism();
const run = await runExperiment(experiment, seconds * 1000, workers);
const criteria = experiment.evaluate(run.flooded, run.quiet);
const report = joinParts(
  `# ${experiment.title}`,
  `${workers} workers, which render ${run.capacity.toFixed(1)} animations a second without other load: the capacity. ` +
    `${ROUNDS} rounds with phases of ${seconds} s; phases of one kind count together. ` +
    'Service and generators share the cores; the process that requests hits runs at ' +
    `${run.isHitClientPreferred ? 'a higher' : 'the same'} priority. Others: the maximum fraction of the cores that other processes used in a phase.`,
  formatCriteria(criteria),
  formatTable(
    ['', 'Requests', 'Responses', 'p50', 'p95', 'p99', 'most', 'sent late, p99', 'Others'],
    [...formatRows('without flood', run.quiet), ...formatRows('with flood', run.flooded)],
  ),
);
publishReport(values.costly ? 'costly.md' : 'overload.md', report, criteria);

function formatRows(title: string, phases: readonly Phase[]): string[][] {
  const others = formatPercent(Math.max(...phases.map(({ othersFraction }) => othersFraction)));
  return (Object.keys(phases[0]?.loads ?? {}) as Sort[]).flatMap((sort) => {
    const late = phases.flatMap(({ loads }) => loads[sort]?.latenessMs ?? []);
    const statuses = new Set(findResponses(phases, sort).map(({ status }) => status));
    return [...statuses].sort().map((status) => {
      const responses = findResponses(phases, sort, status);
      return [
        ...[title, sort, `${status} × ${responses.length}`],
        ...[0.5, 0.95, 0.99, 1].map((fraction) => formatMs(timeOf(responses, fraction))),
        ...[formatMs(quantile(late, 0.99)), others],
      ];
    });
  });
}
