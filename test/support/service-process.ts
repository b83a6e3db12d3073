import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The compiled service, running as a process of its own. */
export interface ServiceProcess {
  /** Scheme, host and port. */
  readonly origin: string;
  readonly pid: number;
  /** All that it has printed so far. */
  readonly output: () => string;
  readonly stop: () => Promise<void>;
}

/**
 * Starts the service on a free port, with these variables and no other.
 *
 * @throws Error with all that it printed, if it ends instead
 */
export async function startService(
  environment: Readonly<Record<string, string>>,
): Promise<ServiceProcess> {
  const child = spawn(process.execPath, ['dist/main.js'], {
    env: { PATH: process.env.PATH ?? '', PORT: '0', WORKERS: '1', ...environment },
  });
  const exited = once(child, 'exit');
  let output = '';
  const origin = await new Promise<string>((resolve, reject) => {
    const collect = (chunk: Buffer): void => {
      output += chunk.toString();
      const address = /Darkroom listens on (http:\/\/[\d.:]+)/.exec(output)?.[1];
      if (address !== undefined) resolve(address);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('exit', () => reject(new Error(`The service has ended.\n${output}`)));
  });
  return {
    origin,
    pid: child.pid ?? 0,
    output: () => output,
    stop: async () => {
      child.kill();
      await exited;
    },
  };
}
