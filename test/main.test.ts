import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listenUntilEnd } from './support/at-end.ts';
import { startDarkroom } from './support/processes/command-line.ts';
import { startFlags } from './support/processes/start-flags.ts';
import { isAlive, readProcessFile, treeOf, workersOf } from './support/processes/worker-ids.ts';
import { useTemporaryDirectory } from './support/temporary-directory.ts';
import { atScale } from './support/test-scale.ts';

const SLOW_PATH =
  '/splashes/1472222222222222223/0123456789abcdef0123456789abcdef.webp?size=4096&quality=lossless';

const PHOTO = 'fixtures/corpus/jpeg-large/exifr__IMG_20180725_163423.jpg';

/** A render of some seconds: just below 4 megapixels, above which lossless uses the least effort. */
const LONG_PATH = '/attachments/1/2/long.jpg?format=webp&quality=lossless&width=2270';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

/** One worker per lane, and no process for the trial of a video decoder. */
const threeWorkers = { PORT: '0', WORKERS: '1', VIDEO_DECODER: 'off' };

/** Maximum time until the workers of an ended service have ended, in milliseconds. */
const ORPHAN_LIMIT_MS = 1_000;

type Service = ReturnType<typeof start>;

/** Starts the compiled service as a process until the end of the test, with its output redirected as in a shell. */
function start(environment: Record<string, string>, redirection = '') {
  const script = `exec "$0" "$@" ${redirection}`;
  const command = ['sh', '-c', script, process.execPath, ...startFlags] as const;
  const { child, stderr, ended } = startDarkroom(['dist/main.js'], environment, command);
  onTestFinished(() => void child.kill('SIGKILL'));
  let stdout = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  return { process: child, pid: child.pid ?? 0, stdout: () => stdout, stderr, ended };
}

describe('the process', () => {
  const links = ({ stderr }: Service): string[] =>
    [...stderr().matchAll(/^ {2}(http:\S+)$/gm)].flatMap((match) => match[1] ?? []);
  const listening = (running: Service) => expect.poll(() => links(running).length).toBe(3);
  const linesOf = ({ stdout }: Service) =>
    stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  const logged = ({ stdout }: Service, text: string) => expect.poll(stdout).toContain(text);
  /** Waits until a worker has been busy for a while. */
  const rendering = ({ pid }: Service) => {
    const before = new Map(workersOf(pid).map((worker) => [worker, cpuTicksOf(worker)]));
    const isBusy = (worker: number) => cpuTicksOf(worker) > (before.get(worker) ?? 0) + 2;
    return expect.poll(() => workersOf(pid).some(isBusy)).toBe(true);
  };
  /** A service that started a long render, and its workers. */
  const startLongRender = async (settings: Record<string, string> = {}) => {
    const { path, put } = await useTemporaryDirectory();
    await put('attachments/1/2/long.jpg', readFileSync(PHOTO));
    const running = start({ ...threeWorkers, STORAGE_DIR: path, ...settings });
    await logged(running, 'Darkroom listens on ');
    const [origin] = /http:\/\/127\.0\.0\.1:\d+/.exec(running.stdout()) ?? [];
    const workers = workersOf(running.pid);
    expect(workers).toHaveLength(3);
    fetch(`${origin}${LONG_PATH}`).catch(() => undefined);
    await rendering(running);
    return { running, workers };
  };
  const endSoon = (workers: readonly number[]) =>
    expect.poll(() => workers.filter(isAlive), { timeout: ORPHAN_LIMIT_MS }).toEqual([]);

  test('starts without settings, also with a full disk for its log, and prints working links', async () => {
    const running = start({ PORT: '0' }, '>/dev/full');
    await listening(running);
    for (const link of links(running)) {
      const response = await fetch(link);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toMatch(/^image\/(webp|gif)$/);
      expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(1_000);
    }
    const [, address = ''] = /^Look around: (http:\S+)$/m.exec(running.stderr()) ?? [];
    expect((await fetch(address)).status).toBe(200);
    running.process.kill('SIGTERM');
    expect(await running.ended).toBe(0);
  });

  test('exits with status 78 and all faults of an invalid configuration', () => {
    const env = { PATH: process.env.PATH, PORT: 'eighty', STORAGE_DIR: '/nowhere', WORKER: '2' };
    const command = ['-c', 'ulimit -n 64; exec node dist/main.js'];
    const { status, stderr } = spawnSync('sh', command, { env, encoding: 'utf8' });
    expect(stderr).toBe(
      'The configuration is not valid:\n' +
        'PORT: expected an integer from 0 to 65535 but received "eighty"\n' +
        'STORAGE_DIR: expected an existing directory but received "/nowhere"\n' +
        'ulimit -n: expected a limit of at least 128 open files (LimitNOFILE= of systemd, --ulimit of Docker) but received 64\n' +
        'Warning: WORKER is not a setting of Darkroom; did you mean WORKERS?\n',
    );
    expect(status).toBe(78);
  });

  test('logs its address, release, risky settings, and an uncaught error once', async () => {
    const warn = "process.emitWarning('old', 'DeprecationWarning')";
    const fail = "setTimeout(()=>{throw new Error('second')});throw new Error('first')";
    const preload = `setTimeout(()=>${warn},1500);process.on('SIGUSR2',()=>{${fail}})`;
    const running = start({
      ...threeWorkers,
      HOST: '0.0.0.0',
      EXPLORER: 'on',
      STORAGE_DIRR: '/somewhere',
      RATE_LIMIT_REQUESTS: '600',
      TRUST_PROXY: 'true',
      NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(preload)}"`,
    });
    await logged(running, 'DeprecationWarning');
    await listening(running);
    const workers = workersOf(running.pid);
    running.process.kill('SIGUSR2');
    expect(await running.ended).toBe(1);
    await endSoon(workers);
    const lines = linesOf(running);
    const first = lines.find(({ msg }) => msg.startsWith('Darkroom listens on http://0.0.0.0:'));
    expect(first).toMatchObject({ version, commit: expect.stringMatching(/^[\da-f]{12}$/) });
    const { address } = first;
    const warnings = [
      { variable: 'STORAGE_DIRR', msg: expect.stringMatching(/did you mean STORAGE_DIR\?$/) },
      { address, msg: expect.stringMatching(/private attachments too/) },
      { address, msg: expect.stringMatching(/^With TRUST_PROXY=true, anyone/) },
      { warning: 'DeprecationWarning', msg: 'old' },
    ];
    expect(lines.filter(({ level }) => level === 40)).toHaveLength(warnings.length);
    // The warning may precede or follow the listening.
    for (const warning of warnings)
      expect(lines).toContainEqual(expect.objectContaining({ ...warning, level: 40 }));
    const fatal = lines.filter(({ level }) => level === 60);
    expect(fatal).toMatchObject([{ err: { message: 'first' } }]);
    expect(lines.at(-1)).toMatchObject({ msg: 'stopped', status: 1 });
    expect(running.stderr()).not.toContain('Warning');
    // The printed links work.
    expect(links(running)[0]).toMatch(/^http:\/\/127\.0\.0\.1:/);
  });

  test('reports a port in use', async () => {
    const port = await listenUntilEnd(createServer());
    const running = start({ ...threeWorkers, PORT: String(port) });
    expect(await running.ended).toBe(1);
    const said = `address already in use 127.0.0.1:${port}; set PORT\n`;
    expect(running.stderr()).toContain(said);
    const taken = { PORT: '0', ADMIN_PORT: String(port), ADMIN_TOKEN: 'x'.repeat(16) };
    const other = start({ ...threeWorkers, ...taken });
    expect(await other.ended).toBe(1);
    expect(other.stderr()).toContain(`127.0.0.1:${port}; set ADMIN_PORT\n`);
  });

  test('prints no sample links in production', async () => {
    const samples = { NODE_ENV: 'production', STORAGE_DIR: 'fixtures/originals' };
    const running = start({ ...threeWorkers, ...samples });
    await logged(running, 'Darkroom listens on ');
    running.process.kill('SIGTERM');
    expect(await running.ended).toBe(0);
    expect(running.stderr()).toBe('');
  });

  test.each<NodeJS.Signals[][]>([[['SIGTERM', 'SIGINT']], [['SIGHUP']]])(
    'finishes running requests after %j, and leaves no worker behind',
    async (signals) => {
      const running = start({ ...threeWorkers, TRANSFORM_TIMEOUT_MS: '60000' });
      await listening(running);
      const { origin } = new URL(links(running)[0] ?? '');
      // Slow enough to be running when the signal arrives.
      const slow = fetch(`${origin}${SLOW_PATH}`);
      await rendering(running);
      const workers = workersOf(running.pid);
      expect(workers).toHaveLength(3);
      for (const signal of signals) {
        // A terminal signals all of its processes.
        for (const pid of workers) process.kill(pid, signal);
        running.process.kill(signal);
      }
      const response = await slow;
      expect(response.status).toBe(200);
      expect((await response.arrayBuffer()).byteLength).toBe(
        Number(response.headers.get('content-length')),
      );
      expect(await running.ended).toBe(0);
      expect(linesOf(running).at(-1)).toMatchObject({ msg: 'stopped', status: 0 });
      await expect(fetch(`${origin}/avatars/0.png`)).rejects.toThrow();
      await expect.poll(() => workers.filter(isAlive)).toEqual([]);
    },
  );

  /** Processes of a service that are stopped and continued together. */
  const frozen: [string, (service: Service) => number[]][] = [
    ['its main process', ({ pid }) => [pid]],
    ['all its processes', ({ pid }) => treeOf(pid)],
  ];
  test.each(atScale(frozen.slice(0, 1), frozen))(
    'serves a render whose deadline passes while %s cannot run',
    async (_, processIdsOf) => {
      const timeoutMs = atScale(3_000, 6_000);
      const running = start({ ...threeWorkers, TRANSFORM_TIMEOUT_MS: String(timeoutMs) });
      await listening(running);
      const { origin } = new URL(links(running)[0] ?? '');
      const slow = fetch(`${origin}${SLOW_PATH}`);
      await rendering(running);
      const processIds = processIdsOf(running);
      for (const processId of processIds) process.kill(processId, 'SIGSTOP');
      await sleep(timeoutMs + 1_500);
      for (const processId of processIds) process.kill(processId, 'SIGCONT');
      const response = await slow;
      expect(response.status).toBe(200);
      expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(0);
      expect(running.stdout()).not.toContain('TRANSFORM_TIMEOUT');
    },
    30_000,
  );

  const stopTwice = async (running: Service): Promise<void> => {
    running.process.kill('SIGTERM');
    await logged(running, 'stopping');
    await sleep(250); // an earlier one would count as the same signal
    running.process.kill('SIGTERM');
  };
  const endings: [string, (running: Service) => unknown, number | string, string][] = [
    ['gets a second signal', stopTwice, 1, 'a second signal'],
    ['gets a signal and has no time', ({ process: it }) => it.kill(), 1, 'grace period expired'],
    ['is killed', ({ process: it }) => it.kill('SIGKILL'), 'SIGKILL', ''],
  ];
  test.each(endings.slice(0, atScale(1, 3)))(
    'leaves no worker behind, busy or idle, if it %s',
    async (name, end, status, reason) => {
      const hasTime = !name.endsWith('no time');
      const settings = { SHUTDOWN_GRACE_MS: hasTime ? '20000' : '200' };
      const { running, workers } = await startLongRender(settings);
      await end(running);
      expect(await running.ended).toBe(status);
      expect(running.stdout()).toContain(reason);
      await endSoon(workers);
    },
  );

  test.each(atScale([100], [0, 100, 250]))(
    'ends before it listens, %i ms after its start, with no worker left',
    async (delayMs) => {
      const running = start(threeWorkers);
      await expect.poll(() => workersOf(running.pid).length, { interval: 1 }).toBe(3);
      const workers = workersOf(running.pid);
      await sleep(delayMs); // at any moment of their start
      running.process.kill('SIGTERM');
      expect(await running.ended).toBe(0);
      await expect.poll(() => workers.filter(isAlive)).toEqual([]);
    },
  );

  test('leaves no process behind if it is killed during its start', async () => {
    const running = start({ PORT: '0', WORKERS: '2' });
    const { pid } = running;
    const isWorker = (other: number): boolean =>
      readProcessFile(other, 'cmdline').includes('max-old-space-size=128');
    await expect.poll(() => treeOf(pid).slice(2).some(isWorker), { interval: 1 }).toBe(true);
    running.process.kill('SIGSTOP'); // the workers' channels wait for it
    await sleep(500);
    const others = treeOf(pid).slice(1);
    running.process.kill('SIGKILL');
    await endSoon(others);
  });
});

/** Processor time of a process so far, in ticks of 10 ms (Linux, proc(5)). */
function cpuTicksOf(pid: number): number {
  const fields = readProcessFile(pid, 'stat').split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
