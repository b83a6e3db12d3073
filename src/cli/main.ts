import { constants } from 'node:os';
import { handleStopSignals, type StopSignal } from '../stop-signals.ts';
import { runCommandLine } from './command-line.ts';

/** The first SIGINT, SIGTERM or SIGHUP lets a command clean up, the second ends it. */
async function main(): Promise<void> {
  // Warnings of Node and of packages are for their developers; the service logs them.
  process.removeAllListeners('warning');
  const args = process.argv.slice(2);
  const stopping = new AbortController();
  let stoppedBy: StopSignal = 'SIGINT';
  let restoreSignals = (): void => undefined;
  if (args[0] !== 'serve') {
    restoreSignals = handleStopSignals(
      process,
      (signal) => {
        stoppedBy = signal;
        stopping.abort();
      },
      (signal) => {
        restoreSignals();
        dieOf(signal);
      },
    );
  }
  const end = await runCommandLine(args, {
    environment: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: stopping.signal,
  });
  const leave = (): void => {
    if (end !== 'stopped') process.exit(end);
    restoreSignals();
    dieOf(stoppedBy);
  };
  // Exits despite open handles, such as connections to a bucket, but only after all output is written.
  process.stdout.write('', () => process.stderr.write('', leave));
}

/** A shell sees which signal ended the process. */
function dieOf(signal: StopSignal): void {
  process.kill(process.pid, signal);
  // The first process of a container survives the signal.
  process.exit(128 + constants.signals[signal]);
}

// The reader may have closed the pipe.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(1);
});

await main();
