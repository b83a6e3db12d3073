import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { atEnd } from '../at-end.ts';
import { startFlags } from './start-flags.ts';
import { treeOf } from './worker-ids.ts';

/** The compiled service in its own process. */
export type ServiceProcess = Awaited<ReturnType<typeof startService>>;

/**
 * Starts the service on a free port with these variables only; throws with the output if it exits. By default, one
 * worker runs and the explorer is off. With `isPidOne`, the service is the first process of a PID namespace, as in a
 * container without init. `openFiles` limits open files; `membersFile` lists the processes of the cgroup to start in.
 */
export async function startService(
  environment: Readonly<Record<string, string>>,
  {
    openFiles,
    isPidOne = false,
    membersFile,
  }: {
    readonly openFiles?: number | undefined;
    readonly isPidOne?: boolean;
    readonly membersFile?: string;
  } = {},
) {
  const join = membersFile === undefined ? '' : `echo $$ >${membersFile} && `;
  const limit = openFiles === undefined ? join : `${join}ulimit -n ${openFiles} && `;
  const first = isPidOne ? 'unshare --pid --fork --mount-proc --kill-child' : '';
  const child = spawn(
    'sh',
    ['-c', `${limit}exec ${first} "$0" "$@"`, process.execPath, ...startFlags, 'dist/main.js'],
    {
      env: {
        PATH: process.env.PATH ?? '',
        PORT: '0',
        WORKERS: '1',
        EXPLORER: 'off',
        ...environment,
      },
    },
  );
  const exited = once(child, 'exit') as Promise<[status: number | null]>;
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  let output = '';
  const origin = await new Promise<string>((resolve, reject) => {
    let address: string | undefined;
    const collect = (chunk: Buffer): void => {
      output += chunk;
      address ??= /Darkroom listens on (https?:\/\/[\d.:]+)/.exec(output)?.[1];
      if (address !== undefined) resolve(address);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('exit', () => reject(new Error(`The service has ended.\n${output}`)));
  });
  const { pid: started = 0 } = child;
  // `unshare` ignores SIGTERM, and exits after its child.
  const [, pid = started] = isPidOne ? treeOf(started) : [];
  return {
    origin,
    pid,
    output: () => output,
    /** Sends a signal, by default SIGTERM, and waits for the exit; returns the exit status. */
    stop: async (signal?: NodeJS.Signals): Promise<number | null> => {
      if (child.exitCode === null && child.signalCode === null) process.kill(pid, signal);
      return (await exited)[0];
    },
  };
}

/** Starts the service until the end of the test or file. */
export async function useService(
  ...start: Parameters<typeof startService>
): Promise<ServiceProcess> {
  const service = await startService(...start);
  atEnd(service.stop);
  return service;
}
