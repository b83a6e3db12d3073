import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startFlags } from '../test/support/start-flags.ts';
import { PATIENT } from './compare/contestants.ts';
import { askAgainAndAgain } from './compare/hit-load.ts';
import { makeOriginals } from './compare/originals.ts';
import { drawFlameGraph, meanings } from './flame/flame-graph.ts';
import { readStacks, type Stack } from './flame/stacks.ts';
import { LoadGenerator } from './harness/load-generator.ts';
import { formatTable } from './harness/markdown.ts';
import { readChildren } from './harness/process-numbers.ts';
import { type Service, startServer } from './harness/service.ts';

/*
 * `npm run bench:flame -- --workload avatars --seconds 10`: where the time of the main process and of the
 * workers goes, as flame graphs. It needs `perf` (Debian's linux-perf), and the right to use it: as root, or
 * with `kernel.perf_event_paranoid` of 2 or less.
 */

const REPORT_FOLDER = 'bench-report';
const WORKLOADS = ['photos', 'avatars', 'emojis', 'hits'] as const;

/** Samples a second; no divisor of usual timers, so that it does not always see the same. */
const FREQUENCY_HZ = 499;

/** Until then, functions are compiled and lanes are learned. */
const WARM_UP_MS = 6_000;
const CLIENTS = 8;

/** So that perf knows the functions of JavaScript by name, those that are interpreted too. */
const NAMES = ['--perf-basic-prof', '--interpreted-frames-native-stack'];

/** Whose time is looked at. */
const PARTIES = ['main', 'workers'] as const;
type Party = (typeof PARTIES)[number];

interface Recorded extends Readonly<Record<Party, readonly Stack[]>> {
  readonly answers: number;
}

const fileOf = (who: Party): string => `${REPORT_FOLDER}/flame-${who}.data`;

const { values } = parseArgs({
  options: {
    workload: { type: 'string', default: 'avatars' },
    seconds: { type: 'string', default: '10' },
  },
});
const workload = findWorkload(values.workload);
const durationMs = Number(values.seconds) * 1000;
if (!(durationMs > 0)) throw new Error('--seconds: expected a number above 0');

function findWorkload(name: string): (typeof WORKLOADS)[number] {
  const found = WORKLOADS.find((known) => known === name);
  if (found === undefined) throw new Error(`--workload: expected one of ${WORKLOADS.join(', ')}`);
  return found;
}

function startRecording(pids: readonly number[], file: string): ChildProcess {
  const frequency = String(FREQUENCY_HZ);
  const what = ['-e', 'cpu-clock', '-F', frequency, '-g', '-o', file, '-p', pids.join(',')];
  return spawn('perf', ['record', '--quiet', ...what], { stdio: 'inherit' });
}

async function endRecording(recording: ChildProcess): Promise<void> {
  const ended = once(recording, 'exit');
  recording.kill('SIGINT');
  await ended;
}

function readRecording(file: string): Stack[] {
  const fields = ['-F', 'comm,pid,ip,sym,dso', '--no-inline'];
  const script = execFileSync('perf', ['script', '-i', file, ...fields], {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return readStacks(script);
}

/** Whose code was at work, in percent of the samples. */
function listShares(stacks: readonly Stack[]): string[] {
  const all = stacks.reduce((sum, { samples }) => sum + samples, 0);
  return Object.keys(meanings).map((kind) => {
    const own = stacks.filter(({ calls }) => calls.at(-1)?.kind === kind);
    const samples = own.reduce((sum, stack) => sum + stack.samples, 0);
    return `${((100 * samples) / Math.max(1, all)).toFixed(0)} %`;
  });
}

/** Drives the workload for a while, with what has not been asked for yet; resolves to how many answers came. */
type Drive = (durationMs: number) => Promise<number>;

function driveRenders(generator: LoadGenerator, origin: string, all: readonly string[]): Drive {
  const paths = [...all];
  return async (durationMs) => {
    const load = { kind: 'closed', origin, paths, clients: CLIENTS, durationMs } as const;
    const { answers } = await generator.run(load);
    paths.splice(0, answers.length);
    return answers.length;
  };
}

function driveHits(origin: string, path: string): Drive {
  return async (durationMs) => {
    const load = { clients: CLIENTS, durationMs, status: 200 };
    return (await askAgainAndAgain(origin, `GET ${path} HTTP/1.1`, load)).answers;
  };
}

/** Records one process, or several, while the workload runs. */
async function record(service: Service, drive: Drive): Promise<Recorded> {
  const processes = { main: [service.pid], workers: readChildren(service.pid) };
  const recordings = PARTIES.map((who) => startRecording(processes[who], fileOf(who)));
  const answers = await drive(durationMs);
  await Promise.all(recordings.map(endRecording));
  return {
    answers,
    main: readRecording(fileOf('main')),
    workers: readRecording(fileOf('workers')),
  };
}

/** Draws what was recorded of a party, and tells it in a row. */
function report(who: Party, { answers, [who]: stacks }: Recorded): string[] {
  const samples = stacks.reduce((sum, stack) => sum + stack.samples, 0);
  const title = who === 'main' ? 'The main process' : 'The workers';
  const subtitle = `${workload}, ${CLIENTS} clients, ${answers} answers; ${samples} samples, ${FREQUENCY_HZ} for a second of CPU`;
  const picture = `${REPORT_FOLDER}/flame-${workload}-${who}.svg`;
  writeFileSync(picture, drawFlameGraph(title, subtitle, stacks));
  const msPerAnswer = ((samples / FREQUENCY_HZ) * 1000) / answers;
  return [who, `${msPerAnswer.toFixed(3)} ms`, ...listShares(stacks), picture];
}

async function main(): Promise<void> {
  mkdirSync(REPORT_FOLDER, { recursive: true });
  const originals = await makeOriginals();
  const generator = new LoadGenerator('equal');
  const caches = workload === 'hits' ? {} : { CACHE_MEMORY_BYTES: '0', CACHE_ORIGINALS_BYTES: '0' };
  const service = await startServer(
    [process.execPath, ...startFlags, ...NAMES, 'dist/main.js'],
    { STORAGE_DIR: originals.folder, ...PATIENT, ...caches },
    `${REPORT_FOLDER}/flame-service.log`,
  );
  try {
    const renderings = originals[workload === 'hits' ? 'avatars' : workload];
    const paths = renderings.map(({ darkroomPath }) => darkroomPath);
    const drive =
      workload === 'hits'
        ? driveHits(service.origin, paths[0] ?? '/')
        : driveRenders(generator, service.origin, paths);
    await drive(WARM_UP_MS);
    const recorded = await record(service, drive);
    const head = ['', 'CPU per answer', ...Object.values(meanings), 'Picture'];
    const rows = PARTIES.map((who) => report(who, recorded));
    process.stdout.write(`${formatTable(head, rows)}\n`);
  } finally {
    for (const who of PARTIES) rmSync(fileOf(who), { force: true });
    await service.stop(5_000);
    generator.close();
    await originals.remove();
  }
}

await main();
