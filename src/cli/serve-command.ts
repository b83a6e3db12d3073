import type { Command } from './command.ts';

/** What `npm start` does once it is built. */
export const serveCommand: Command = {
  summary: 'serves media until it is stopped',
  operands: [],
  help: `
Answers on HOST and PORT (127.0.0.1:3000), with originals from STORAGE_DIR or
S3_BUCKET. With no setting at all it serves the sample originals, and prints
three links to open.

A supervisor should rather start "node --initial-heap-size=128 dist/main.js",
which collects garbage less often. SIGTERM and SIGINT let running requests
end, within SHUTDOWN_GRACE_MS.

Exit status: 0 stopped; 1 cut off, or failed; 78 the configuration is not
valid.`,
  run: async () => {
    // The service is a program of its own, with signals and exit statuses of its own; to import it is
    // to run it.
    await import('../main.ts');
    return new Promise<never>(() => undefined);
  },
};
