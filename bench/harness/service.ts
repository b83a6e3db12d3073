import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePorts } from '../../test/support/processes/local-server.ts';
import { startFlags } from '../../test/support/processes/start-flags.ts';
import { REPORT_DIRECTORY } from './report.ts';

const START_TIMEOUT_MS = 20_000;
const START_POLL_MS = 20;

/** Server in its own process. */
export type Service = Awaited<ReturnType<typeof startServer>>;

/** Starts the compiled service with the flags of `npm start`. */
export function startService(
  name: string,
  environment: Readonly<Record<string, string>>,
): Promise<Service> {
  return startServer(name, [process.execPath, ...startFlags, 'dist/main.js'], environment);
}

/** Starts one of the servers of `own-servers.ts`. */
export function startOwn(name: string, ...options: readonly string[]): Promise<Service> {
  const script = 'bench/dist/bench/harness/own-servers.js';
  return startServer(name, [process.execPath, script, name, ...options]);
}

/** Settings for originals behind the `directory` server of `own-servers.ts`, as a bucket. */
export const bucketSettings = (endpoint: string) => ({
  STORAGE: 's3',
  S3_BUCKET: 'originals',
  S3_ENDPOINT: endpoint,
  AWS_ACCESS_KEY_ID: 'anybody',
  AWS_SECRET_ACCESS_KEY: 'any',
  AWS_EC2_METADATA_DISABLED: 'true',
});

/**
 * Starts a server on a free port of 127.0.0.1, which it receives as `PORT` and as `{port}` in the command.
 *
 * @param name name of its log in the directory of reports
 * @param environment all variables except `PATH`, `HOST` and `PORT`
 * @throws Error with the server's output, if it exits or does not listen in time
 */
export async function startServer(
  name: string,
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
) {
  const [port = 0] = await findFreePorts(1);
  mkdirSync(REPORT_DIRECTORY, { recursive: true });
  const logFile = `${REPORT_DIRECTORY}/${name}.log`;
  const log = openSync(logFile, 'w');
  const words = command.map((word) => word.replace('{port}', String(port)));
  // The kernel ends the server with this process (prctl(2)), but Ctrl-C at the terminal does not reach it.
  const child = spawn('setpriv', ['--pdeathsig', 'TERM', ...words], {
    detached: true,
    env: { PATH: process.env.PATH ?? '', HOST: '127.0.0.1', PORT: String(port), ...environment },
    // Directly into the file, so that no process reads the log during a measurement.
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const { pid } = child;
  if (pid === undefined) throw new Error('setpriv cannot be started.');
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const isAlive = () => child.exitCode === null && child.signalCode === null;
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (!(await isListening(port))) {
    if (performance.now() > deadlineMs || !isAlive()) {
      child.kill('SIGKILL');
      throw new Error(`The server does not listen.\n${readFileSync(logFile, 'utf8')}`);
    }
    await sleep(START_POLL_MS);
  }
  return {
    pid,
    origin: `http://127.0.0.1:${port}`,
    logFile,
    isAlive,
    /** Sends SIGTERM, after `graceMs` SIGKILL, waits for the exit, and kills remaining child processes. */
    stop: async (graceMs = 5_000) => {
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      child.kill('SIGTERM');
      const [code, signal] = await exited;
      clearTimeout(timer);
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // The process group has no processes left.
      }
      return { code, signal };
    },
  };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.on('connect', () => socket.destroy()).on('error', () => resolve(false));
  });
}

/** @throws Error if the status is not 200 */
export async function fetchOk(origin: string, path: string) {
  const response = await fetch(origin + path);
  const body = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200) throw new Error(`${path} gets ${response.status}.`);
  return { headers: response.headers, body };
}

/** Creates a directory, and removes it after `use` has ended or failed. */
export async function useTemporaryDirectory<Result>(
  use: (directory: string) => Promise<Result>,
): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-bench-'));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}
