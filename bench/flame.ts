import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startFlags } from '../test/support/start-flags.ts';
import { makeOriginals, type Rendering } from './compare/originals.ts';
import { drawFlameGraph } from './flame/flame-graph.ts';
import { readStacks, type Stack } from './flame/stacks.ts';
import { LoadGenerator } from './harness/load-generator.ts';
import { formatTable } from './harness/markdown.ts';
import { readChildren } from './harness/process-numbers.ts';
import { startServer } from './harness/service.ts';

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

const { values } = parseArgs({
  options: {
    workload: { type: 'string', default: 'avatars' },
    seconds: { type: 'string', default: '10' },
  },
});
const workload = WORKLOADS.find((known) => known === values.workload);
const durationMs = Number(values.seconds) * 1000;
if (workload === undefined) throw new Error(`--workload: expected one of ${WORKLOADS.join(', ')}`);
if (!(durationMs > 0)) throw new Error('--seconds: expected a number above 0');

/** What is asked for, before anything is recorded and then. */
function splitPaths(renderings: readonly Rendering[]): { warmUp: string[]; recorded: string[] } {
  const paths = renderings.map(({ darkroomPath }) => darkroomPath);
  if (workload === 'hits') {
    const [first = ''] = paths;
    return { warmUp: [first], recorded: [first] };
  }
  const third = Math.floor(paths.length / 3);
  return { warmUp: paths.slice(0, third), recorded: paths.slice(third) };
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
  const kinds = ['darkroom', 'javascript', 'node', 'imaging', 'system'] as const;
  return kinds.map((kind) => {
    const own = stacks.filter(({ calls }) => calls.at(-1)?.kind === kind);
    const samples = own.reduce((sum, stack) => sum + stack.samples, 0);
    return `${((100 * samples) / Math.max(1, all)).toFixed(0)} %`;
  });
}

async function main(): Promise<void> {
  mkdirSync(REPORT_FOLDER, { recursive: true });
  const originals = await makeOriginals();
  const generator = new LoadGenerator('equal');
  const caches = workload === 'hits' ? {} : { CACHE_MEMORY_BYTES: '0', CACHE_ORIGINALS_BYTES: '0' };
  const service = await startServer(
    [process.execPath, ...startFlags, ...NAMES, 'dist/main.js'],
    { STORAGE_DIR: originals.folder, QUEUE_TIMEOUT_MS: '60000', ...caches },
    `${REPORT_FOLDER}/flame-service.log`,
  );
  try {
    const { warmUp, recorded } = splitPaths(
      originals[workload === 'hits' ? 'avatars' : (workload ?? 'avatars')],
    );
    const load = { kind: 'closed', origin: service.origin, clients: CLIENTS } as const;
    await generator.run({ ...load, paths: warmUp, durationMs: WARM_UP_MS });
    const targets = { main: [service.pid], workers: readChildren(service.pid) };
    const files = {
      main: `${REPORT_FOLDER}/flame-main.data`,
      workers: `${REPORT_FOLDER}/flame-workers.data`,
    };
    const recordings = [
      startRecording(targets.main, files.main),
      startRecording(targets.workers, files.workers),
    ];
    const { answers } = await generator.run({ ...load, paths: recorded, durationMs });
    await Promise.all(recordings.map(endRecording));
    const rows = (['main', 'workers'] as const).map((who) => {
      const stacks = readRecording(files[who]);
      rmSync(files[who]);
      const samples = stacks.reduce((sum, stack) => sum + stack.samples, 0);
      const subtitle = `${workload}, ${CLIENTS} clients, ${answers.length} answers; ${samples} samples, ${FREQUENCY_HZ} for a second of CPU`;
      const title = who === 'main' ? 'The main process' : 'The workers';
      const file = `${REPORT_FOLDER}/flame-${workload}-${who}.svg`;
      writeFileSync(file, drawFlameGraph(title, subtitle, stacks));
      const msPerAnswer = ((samples / FREQUENCY_HZ) * 1000) / answers.length;
      return [who, `${msPerAnswer.toFixed(2)} ms`, ...listShares(stacks), file];
    });
    const head = [
      '',
      'CPU per answer',
      'Darkroom',
      'Other JavaScript',
      'Node and V8',
      'Imaging',
      'System',
      'Picture',
    ];
    process.stdout.write(`${formatTable(head, rows)}\n`);
  } finally {
    await service.stop(5_000);
    generator.close();
    await originals.remove();
  }
}

await main();
