import { parseArgs } from 'node:util';
import type { Contest, Stage, Workload } from './compare/contest.ts';
import { type Contestant, foreignContestant, otherPeers } from './compare/contestants.ts';
import { parseServer } from './compare/foreign-server.ts';
import { missingLikeness } from './compare/likeness.ts';
import { makeOriginals, type Originals } from './compare/originals.ts';
import {
  type Absence,
  formatComparison,
  isReached,
  judgeAims,
  readVersions,
} from './compare/report.ts';
import { externalWorkload } from './compare/workloads/external.ts';
import { hitWorkloads } from './compare/workloads/hits.ts';
import { passthroughWorkloads } from './compare/workloads/passthrough.ts';
import { renderWorkloads } from './compare/workloads/renders.ts';
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
const rounds = Math.ceil(parsePositive('rounds', values.rounds));
const turnMs = parsePositive('seconds', values.seconds) * 1000;
const isWanted = ({ name }: Workload): boolean => values.only.some((part) => name.includes(part));

const foreign = values.server.map(parseServer);
const cores = values['simulated-cores'];
const workloads =
  cores === undefined
    ? [...renderWorkloads(), ...hitWorkloads(), ...passthroughWorkloads(), externalWorkload()]
    : [simulatedCores(parsePositive('simulated-cores', cores))];

/** `npm run bench -- --seconds 4 --rounds 3 --only avatars --only hits`: see docs/performance.md. */
async function main(): Promise<number> {
  const chosen = workloads.filter(isWanted);
  if (chosen.length === 0) {
    throw new Error(`--only: expected parts of ${workloads.map(({ name }) => name).join('; ')}`);
  }
  const absences: Absence[] = [];
  const contests = await holdAll(chosen, absences);
  const aims = judgeAims(
    contests,
    chosen.flatMap(({ name, aims: of }) => of.map((aim) => ({ contest: name, ...aim }))),
  );
  const report = formatComparison({
    contests,
    aims,
    absences,
    left: workloads.filter((workload) => !isWanted(workload)).map(({ name }) => name),
    versions: readVersions(),
    command: ['npm run bench --', ...process.argv.slice(2)].join(' '),
  });
  publishReport('compare.md', report);
  return aims.every(isReached) ? 0 : 1;
}

function findPeer(name: string): Contestant {
  const peer = otherPeers[name];
  if (peer === undefined)
    throw new Error(`--peer: expected ${Object.keys(otherPeers).join(' or ')}`);
  return peer;
}

function isLikenessWanted(absences: Absence[]): boolean {
  const why = values.likeness ? missingLikeness() : undefined;
  if (why !== undefined) absences.push({ contest: 'all', who: 'SSIMULACRA2', why });
  return values.likeness && why === undefined;
}

async function holdAll(chosen: readonly Workload[], absences: Absence[]): Promise<Contest[]> {
  let originals: Promise<Originals> | undefined;
  const generator = new LoadGenerator('equal');
  const stage: Stage = {
    rounds,
    turnMs,
    generator,
    peers: [...values.peer.map(findPeer), ...foreign.map(foreignContestant)],
    isLikenessWanted: isLikenessWanted(absences),
    originals: () => {
      originals ??= makeOriginals(values.folder);
      return originals;
    },
    noteAbsence: (contest, who, why) => void absences.push({ contest, who, why }),
  };
  try {
    const contests: Contest[] = [];
    for (const { name, hold } of chosen) {
      process.stderr.write(`${new Date().toISOString()} ${name}\n`);
      const contest = await hold(stage);
      if (contest !== undefined) contests.push(contest);
    }
    return contests;
  } finally {
    generator.close();
    await (await originals)?.remove();
  }
}

process.exitCode = await main();
