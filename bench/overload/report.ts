import { availableParallelism } from 'node:os';
import {
  type Criterion,
  formatCriteria,
  formatMs,
  formatShare,
  formatTable,
  joinParts,
  quantile,
} from '../harness/report.ts';
import { ALONE, type Gathered, timesOf, withStatus } from './experiments.ts';
import type { Sort } from './originals.ts';
import type { Run } from './run.ts';

/** Gathers the responses of a sort in all phases beside a flood. */
function gather({ phases, options }: Run, sort: Sort, flood: string): Gathered {
  const own = phases.filter((phase) => phase.flood === flood);
  const responses = own.flatMap(({ loads }) => loads[sort]?.responses ?? []);
  return { responses, seconds: (own.length * options.phaseMs) / 1_000 };
}

/** Compares a run with its aims, beside the last flood. */
export function judgeRun(run: Run): readonly Criterion[] {
  const { judge, floods } = run.experiment;
  return judge((sort, flood) => gather(run, sort, flood), floods.at(-1)?.name ?? ALONE);
}

export function formatRun(run: Run): string {
  const { experiment, capacity, isHitClientPreferred } = run;
  const { workers, phaseMs, rounds } = run.options;
  return joinParts(
    `# ${experiment.title}`,
    `${workers} workers, which render ${capacity.toFixed(1)} animations a second without other load: the capacity. ` +
      `${rounds} rounds with phases of ${phaseMs / 1_000} s; phases of one kind count together, and the aims are for the last flood. ` +
      `Service and generators share ${availableParallelism()} cores; the process that requests hits runs at ` +
      `${isHitClientPreferred ? 'a higher' : 'the same'} priority. Others: the most that other processes used in a phase, as a share of the cores.`,
    formatCriteria('Aim', judgeRun(run)),
    formatLoads(run),
  );
}

function formatLoads(run: Run): string {
  const rows = [ALONE, ...run.experiment.floods.map(({ name }) => name)].flatMap((flood) => {
    const own = run.phases.filter((phase) => phase.flood === flood);
    const sorts = Object.keys(own[0]?.loads ?? {}) as Sort[];
    const others = formatShare(Math.max(...own.map(({ othersShare }) => othersShare)));
    return sorts.flatMap((sort) => {
      const { responses } = gather(run, sort, flood);
      const late = own.flatMap(({ loads }) => loads[sort]?.latenessMs ?? []);
      const statuses = [...new Set(responses.map(({ status }) => status))].sort();
      return statuses.map((status) => {
        const timesMs = timesOf(withStatus(responses, status));
        return [
          ...[flood, sort, `${status} × ${timesMs.length}`],
          ...[0.5, 0.95, 0.99, 1].map((share) => formatMs(quantile(timesMs, share))),
          ...[formatMs(quantile(late, 0.99)), others],
        ];
      });
    });
  });
  const head = 'Beside|Requests|Responses|p50|p95|p99|most|sent late, p99|Others';
  return formatTable(head.split('|'), rows);
}
