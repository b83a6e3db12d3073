import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFlags } from '../../test/support/start-flags.ts';

/** Longest time until a server listens, in milliseconds. */
const START_TIMEOUT_MS = 20_000;

/** How often it is looked whether one does, in milliseconds: how long a start takes is measured, too. */
const START_POLL_MS = 5;

/** How a process ended; `undefined` while it runs. */
export interface Ending {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A server as a process of its own. */
export interface Service {
  readonly pid: number;
  /** Scheme, host and port. */
  readonly origin: string;
  /** Where its log goes: straight into the file, so that nobody has to read it meanwhile. */
  readonly logFile: string;
  readonly ending: () => Ending | undefined;
  /** Sends SIGTERM and waits for the end; after `graceMs`, SIGKILL. */
  readonly stop: (graceMs: number) => Promise<Ending>;
}

/** Starts the compiled service, `dist/main.js`, as in production; see `startServer`. */
export function startService(
  environment: Readonly<Record<string, string>>,
  logFile: string,
): Promise<Service> {
  return startServer([process.execPath, ...startFlags, 'dist/main.js'], environment, logFile);
}

/**
 * Starts a server on a free port of 127.0.0.1, with these variables and no other. It has to print that it
 * "listens on" its origin.
 *
 * @param command program and arguments
 * @throws Error with its output, if it ends or does not listen in time
 */
export function startServer(
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
  logFile: string,
): Promise<Service> {
  return start(command, { HOST: '127.0.0.1', PORT: '0', ...environment }, logFile, 'KILL', () => {
    return /listens on (http:\/\/[\d.:]+)/.exec(readFileSync(logFile, 'utf8'))?.[1];
  });
}

/**
 * Starts a server that prints nothing, on a port that it was told, such as nginx. Ends it by SIGTERM where this
 * process ends, so that it can end its own.
 *
 * @throws Error with its output, if it ends or does not listen in time
 */
export function startServerOnPort(
  command: readonly string[],
  port: number,
  logFile: string,
): Promise<Service> {
  return start(command, {}, logFile, 'TERM', async () =>
    (await isListening(port)) ? `http://127.0.0.1:${port}` : undefined,
  );
}

async function start(
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
  logFile: string,
  deathSignal: 'KILL' | 'TERM',
  findOrigin: () => string | undefined | Promise<string | undefined>,
): Promise<Service> {
  const log = openSync(logFile, 'w');
  // Ends with this process, whatever ends that (prctl(2)); but not by a Ctrl-C at the terminal.
  const guarded = ['--pdeathsig', deathSignal, ...command];
  const child = spawn('setpriv', guarded, {
    detached: true,
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const exited = once(child, 'exit');
  const ending = (): Ending | undefined =>
    child.exitCode === null && child.signalCode === null
      ? undefined
      : { code: child.exitCode, signal: child.signalCode };
  try {
    return {
      pid: child.pid ?? 0,
      origin: await waitForOrigin(findOrigin, logFile, ending),
      logFile,
      ending,
      stop: (graceMs) => stop(child, exited, ending, graceMs),
    };
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}

async function waitForOrigin(
  findOrigin: () => string | undefined | Promise<string | undefined>,
  logFile: string,
  ending: () => Ending | undefined,
): Promise<string> {
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadlineMs && ending() === undefined) {
    const origin = await findOrigin();
    if (origin !== undefined) return origin;
    await sleep(START_POLL_MS);
  }
  throw new Error(`The server does not listen.\n${readFileSync(logFile, 'utf8')}`);
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

async function stop(
  child: ChildProcess,
  exited: Promise<unknown>,
  ending: () => Ending | undefined,
  graceMs: number,
): Promise<Ending> {
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  child.kill('SIGTERM');
  if (ending() === undefined) await exited;
  clearTimeout(timer);
  return ending() ?? { code: null, signal: null };
}
