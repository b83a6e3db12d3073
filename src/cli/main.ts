import { constants } from 'node:os';
import { runCommandLine } from './command-line.ts';

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;
type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * A signal that comes again within this time is the same one, in milliseconds: `timeout` of coreutils sends it to
 * the process and to its group, and npx passes on what a terminal has sent to all already. Somebody's second ^C
 * takes longer.
 */
const SAME_SIGNAL_MS = 150;

/**
 * The command line as a program. The first SIGINT or SIGTERM lets a command clean up, the second one
 * ends it. Not so while it serves: the service has its own ways.
 */
async function main(): Promise<void> {
  const args = process.argv.slice(2);
  const stop = new StopSignals();
  if (args[0] !== 'serve') stop.listen();
  const end = await runCommandLine(args, {
    environment: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    columns: process.stderr.isTTY ? process.stderr.columns : undefined,
    signal: stop.aborted,
  });
  const leave = (): void => {
    if (end === 'stopped') stop.dieOfFirst();
    else process.exit(end);
  };
  // Whatever is still open, such as connections to a bucket; but not before all is written.
  process.stdout.write('', () => process.stderr.write('', leave));
}

/** The signals that stop a command. */
class StopSignals {
  readonly #stopping = new AbortController();
  #first: { readonly signal: StopSignal; readonly atMs: number } | undefined;

  /** Aborts with the first of them. */
  get aborted(): AbortSignal {
    return this.#stopping.signal;
  }

  listen(): void {
    for (const signal of STOP_SIGNALS) process.on(signal, this.#take);
  }

  /** Ends the process by the signal that has come first, so that a shell sees what it was. */
  dieOfFirst(): void {
    this.#dieOf(this.#first?.signal ?? 'SIGINT');
  }

  readonly #take = (signal: StopSignal): void => {
    const nowMs = performance.now();
    if (this.#first === undefined) {
      this.#first = { signal, atMs: nowMs };
      this.#stopping.abort();
    } else if (nowMs - this.#first.atMs >= SAME_SIGNAL_MS) {
      this.#dieOf(signal);
    }
  };

  #dieOf(signal: StopSignal): void {
    process.removeListener(signal, this.#take);
    process.kill(process.pid, signal);
    // Who is the first process of a container does not die of it.
    process.exit(128 + constants.signals[signal]);
  }
}

// Whoever reads us may have seen enough: `darkroom render … - | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(1);
});

await main();
