import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePorts } from '../../test/support/processes/free-ports.ts';
import { startFlags } from '../../test/support/processes/start-flags.ts';
import { REPORT_FOLDER } from './report.ts';

/** Longest time until a server listens, in milliseconds. */
const START_TIMEOUT_MS = 20_000;

/** How often it is looked whether one does, in milliseconds. */
const START_POLL_MS = 20;

/** Node, as `npm start` starts it. */
export const NODE_OF_SERVICE = [process.execPath, ...startFlags];

/** A server as a process of its own. */
export type Service = Awaited<ReturnType<typeof startServer>>;

/** A server to be started. */
export interface ServerStart {
  /** Of its log among the reports. */
  readonly name: string;
  /** Program and arguments, by the port on which it is to listen. */
  readonly command: (port: number) => readonly string[];
  /** Its variables, `HOST` and `PORT` beside them, and no other. */
  readonly environment?: Readonly<Record<string, string>>;
  /** What ends it where this process ends; `TERM` where it has processes of its own to end. */
  readonly deathSignal?: 'KILL' | 'TERM';
}

/** Starts the compiled service, `dist/main.js`, as in production; see `startServer`. */
export function startService(
  name: string,
  environment: Readonly<Record<string, string>>,
): Promise<Service> {
  return startServer({ name, command: () => [...NODE_OF_SERVICE, 'dist/main.js'], environment });
}

/**
 * Starts a server on a port of 127.0.0.1.
 *
 * @throws Error with its output, if it ends or does not listen in time
 */
export async function startServer(start: ServerStart) {
  const { name, command, environment, deathSignal = 'KILL' } = start;
  const [port = 0] = await findFreePorts(1);
  mkdirSync(REPORT_FOLDER, { recursive: true });
  const logFile = `${REPORT_FOLDER}/${name}.log`;
  const log = openSync(logFile, 'w');
  // Ends with this process, whatever ends that (prctl(2)); but not by a Ctrl-C at the terminal.
  const child = spawn('setpriv', ['--pdeathsig', deathSignal, ...command(port)], {
    detached: true,
    env: { PATH: process.env.PATH ?? '', HOST: '127.0.0.1', PORT: String(port), ...environment },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const exited = once(child, 'exit');
  const ending = () =>
    child.exitCode === null && child.signalCode === null
      ? undefined
      : { code: child.exitCode, signal: child.signalCode };
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (!(await isListening(port))) {
    if (performance.now() > deadlineMs || ending() !== undefined) {
      child.kill('SIGKILL');
      throw new Error(`The server does not listen.\n${readFileSync(logFile, 'utf8')}`);
    }
    await sleep(START_POLL_MS);
  }
  return {
    pid: child.pid ?? 0,
    /** Scheme, host and port. */
    origin: `http://127.0.0.1:${port}`,
    /** Where its log goes: straight into the file, so that no process has to read it meanwhile. */
    logFile,
    /** `undefined` while it runs. */
    ending,
    /** Sends SIGTERM and waits for the end; after `graceMs`, SIGKILL. */
    stop: async (graceMs = 5_000) => {
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      child.kill('SIGTERM');
      if (ending() === undefined) await exited;
      clearTimeout(timer);
      return ending() ?? { code: null, signal: null };
    },
  };
}

/**
 * Fetches one thing.
 *
 * @throws Error if the status is not 200
 */
export async function fetchOk(origin: string, path: string) {
  const response = await fetch(origin + path);
  const body = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200) throw new Error(`${path} gets ${response.status}.`);
  return { headers: response.headers, body };
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
