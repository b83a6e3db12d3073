import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measureBytes } from './scale/measure-bytes.ts';
import { replay } from './scale/replay.ts';
import { formatReplay, formatScale } from './scale/report.ts';
import { drawMemory, drawReplicas } from './scale/scale-chart.ts';
import {
  edgeSetups,
  memorySetups,
  replicaSetups,
  sizingSetups,
  stores,
} from './scale/scenarios.ts';
import { DEFAULT_SETUP, type Setup } from './scale/setup.ts';
import { type Simulation, simulate } from './scale/simulate.ts';
import { createWorkload, type Workload } from './scale/workload.ts';
import { generateTrace } from './trace/trace.ts';

/** Beside the code, and not part of the repository. */
const REPORT_FOLDER = 'bench-report';

const MEBIBYTE = 2 ** 20;
const REPLAY_MEMORIES = [MEBIBYTE / 4, MEBIBYTE, 4 * MEBIBYTE];
const REPLAY_REQUESTS = 3_000;

/** The smaller models of the check are so many times smaller. */
const CHECK_RATIOS = [4, 16];

const { values } = parseArgs({
  options: {
    requests: { type: 'string' },
    days: { type: 'string', default: '9' },
    'requests-per-day': { type: 'string', default: '10000000' },
    'edge-ratio': { type: 'string' },
    seed: { type: 'string', default: '1' },
    replay: { type: 'boolean', default: false },
    'measure-bytes': { type: 'boolean', default: false },
  },
});
const command = ['npm run bench:scale --', ...process.argv.slice(2)].join(' ');

function readNumber(name: 'requests' | 'days' | 'requests-per-day' | 'seed', usual = 0): number {
  const value = Number(values[name] ?? usual);
  if (!(value > 0)) throw new Error(`--${name}: expected a number above 0`);
  return value;
}

/** `npm run bench:scale -- --requests 1500000 --days 9 --requests-per-day 10000000 --seed 1`. */
function runModel(): void {
  const seed = readNumber('seed');
  const days = readNumber('days');
  const requests = readNumber('requests', 1_500_000);
  const requestsPerDay = readNumber('requests-per-day');
  // Two thirds of the time to fill the caches.
  const span = { fromDay: Math.floor((days * 2) / 3) };
  const workload = createWorkload(generateTrace({ seed, requests, days }));
  const smaller = CHECK_RATIOS.map((ratio) =>
    createWorkload(generateTrace({ seed, requests: Math.ceil(requests / ratio), days })),
  );
  const run = (of: Workload, setups: readonly Setup[]): Simulation[] =>
    setups.map((setup) => simulate(of, setup, span));
  const checked: Setup = { ...DEFAULT_SETUP, requestsPerDay, store: stores.s3 };
  const simulations = {
    memory: run(workload, memorySetups(requestsPerDay)),
    replicas: run(workload, replicaSetups(requestsPerDay)),
    edge: run(workload, [...edgeSetups(requestsPerDay), ...givenEdge(checked)]),
    sizing: run(workload, sizingSetups()),
    check: [workload, ...smaller].flatMap((of) => run(of, [checked])),
  };
  const report = formatScale({ workload, command, ...span, ...simulations });
  writeFileSync(join(REPORT_FOLDER, 'scale.md'), report);
  writeFileSync(join(REPORT_FOLDER, 'scale-memory.svg'), drawMemory(simulations.memory));
  writeFileSync(join(REPORT_FOLDER, 'scale-replicas.svg'), drawReplicas(simulations.replicas));
  process.stdout.write(
    `${report}\nWritten to ${REPORT_FOLDER}/scale.md, scale-memory.svg and scale-replicas.svg\n`,
  );
}

/** `--edge-ratio 0.9`: an edge that answers this share, whatever it is asked. */
function givenEdge(setup: Setup): readonly Setup[] {
  if (values['edge-ratio'] === undefined) return [];
  const ratio = Number(values['edge-ratio']);
  if (!(ratio >= 0 && ratio < 1)) throw new Error('--edge-ratio: expected a share below 1');
  return [{ ...setup, edge: { kind: 'ratio', ratio } }];
}

/** `npm run bench:scale -- --replay --requests 3000`. */
async function runReplay(): Promise<void> {
  const result = await replay({
    seed: readNumber('seed'),
    requests: readNumber('requests', REPLAY_REQUESTS),
    memories: REPLAY_MEMORIES,
    logFile: join(REPORT_FOLDER, 'scale-service.log'),
  });
  const report = formatReplay(result, command);
  writeFileSync(join(REPORT_FOLDER, 'scale-replay.md'), report);
  process.stdout.write(`${report}\nWritten to ${REPORT_FOLDER}/scale-replay.md\n`);
}

mkdirSync(REPORT_FOLDER, { recursive: true });
if (values['measure-bytes']) await measureBytes(join(REPORT_FOLDER, 'scale-service.log'));
else if (values.replay) await runReplay();
else runModel();
