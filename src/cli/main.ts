import { runCommandLine } from './command-line.ts';

/**
 * The command line as a program. The first SIGINT or SIGTERM lets a command clean up, the second one
 * ends it. Not so while it serves: the service has its own ways.
 */
async function main(): Promise<void> {
  const args = process.argv.slice(2);
  const stopped = new AbortController();
  if (args[0] !== 'serve') {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => stopped.abort());
    }
  }
  const status = await runCommandLine(args, {
    environment: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    columns: process.stderr.isTTY ? process.stderr.columns : undefined,
    signal: stopped.signal,
  });
  // Whatever is still open, such as connections to a bucket; but not before all is written.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(status)));
}

// Whoever reads us may have seen enough: `darkroom render … - | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(1);
});

await main();
