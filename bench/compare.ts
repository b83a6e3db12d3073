import { parseArgs } from 'node:util';
import type { Absence, Stage, Workload } from './compare/contest.ts';
import { type Contestant, otherPeers, parseServer } from './compare/contestants.ts';
import { hasLikenessTool } from './compare/likeness.ts';
import { makeOriginals, type Originals } from './compare/originals.ts';
import { type Contest, formatComparison, judgeAims } from './compare/report.ts';
import { externalWorkload } from './compare/workloads/external.ts';
import { renderWorkloads } from './compare/workloads/renders.ts';
import {
  hitWorkloads,
  passthroughWorkloads,
  warmPickerWorkload,
} from './compare/workloads/repeated.ts';
import { simulatedCores } from './compare/workloads/simulated-cores.ts';
import { LoadGenerator } from './harness/load-generator.ts';
import { parsePositive, publishReport } from './harness/report.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    /** Part of a contest's name: only these; may be given several times. */
    only: { type: 'string', multiple: true, default: [''] },
    /** `NAME=http://host:port/resize?w={width}&f={format}&src={path}`: somebody else's, as often as there are. */
    server: { type: 'string', multiple: true, default: [] },
    /** `thumbor` or `oximg`, where it is installed; may be given several times. */
    peer: { type: 'string', multiple: true, default: [] },
    /** Whether SSIMULACRA2 and bytes are measured, too, where it is installed. */
    likeness: { type: 'boolean', default: false },
    /** Instead of all else: what one process can feed, with so many workers that sleep instead of rendering. */
    'simulated-cores': { type: 'string' },
    /** Where the originals are drawn, for servers that run already: an empty folder, or none yet. */
    folder: { type: 'string' },
  },
});
const isWanted = ({ name }: Workload): boolean => values.only.some((part) => name.includes(part));

/** `npm run bench -- --seconds 4 --rounds 3 --only avatars --only hits`: see docs/performance.md. */
async function main(): Promise<number> {
  const workloads = listWorkloads();
  const chosen = workloads.filter(isWanted);
  if (chosen.length === 0) {
    throw new Error(`--only: expected parts of ${workloads.map(({ name }) => name).join('; ')}`);
  }
  const absences: Absence[] = [];
  const contests = await holdAll(chosen, absences);
  const left = workloads.filter((workload) => !isWanted(workload)).map(({ name }) => name);
  const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
  publishReport('compare.md', formatComparison(contests, absences, left, command));
  return judgeAims(contests).every(({ isReached }) => isReached) ? 0 : 1;
}

function listWorkloads(): readonly Workload[] {
  const cores = values['simulated-cores'];
  if (cores !== undefined) return [simulatedCores(parsePositive('simulated-cores', cores))];
  const peers = [...values.peer.map(findPeer), ...values.server.map(parseServer)];
  const repeated = [warmPickerWorkload, ...hitWorkloads, ...passthroughWorkloads];
  return [...renderWorkloads(peers), ...repeated, externalWorkload];
}

function findPeer(name: string): Contestant {
  const peer = otherPeers[name];
  if (peer === undefined)
    throw new Error(`--peer: expected ${Object.keys(otherPeers).join(' or ')}`);
  return peer;
}

async function holdAll(chosen: readonly Workload[], absences: Absence[]): Promise<Contest[]> {
  let originals: Promise<Originals> | undefined;
  const generator = new LoadGenerator('equal');
  const isLikenessWanted = values.likeness && hasLikenessTool();
  if (isLikenessWanted !== values.likeness) {
    absences.push(['all', 'SSIMULACRA2', 'needs ssimulacra2 (PyPI: pip install ssimulacra2)']);
  }
  const stage: Stage = {
    rounds: Math.ceil(parsePositive('rounds', values.rounds)),
    turnMs: parsePositive('seconds', values.seconds) * 1000,
    generator,
    isLikenessWanted,
    originals: () => {
      originals ??= makeOriginals(values.folder);
      return originals;
    },
    absences,
  };
  try {
    const contests: Contest[] = [];
    for (const { hold, ...workload } of chosen) {
      process.stderr.write(`${new Date().toISOString()} ${workload.name}\n`);
      contests.push({ ...workload, ...(await hold(stage)) });
    }
    return contests;
  } finally {
    generator.close();
    await (await originals)?.remove();
  }
}

process.exitCode = await main();
