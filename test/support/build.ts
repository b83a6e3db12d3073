import { execFileSync } from 'node:child_process';
import { basename } from 'node:path';

/** Workers of tests, which see nothing but their own file, like the render worker. */
const WORKERS = [
  'test/support/processes/scripted-worker.mjs',
  'test/hostile/takeover/malicious-worker.mjs',
];

/** Compiles the sources once per run: worker processes are started from `dist`, like in production. */
export default function build(): void {
  execFileSync('npm', ['run', 'build', '--silent'], { stdio: 'inherit' });
  for (const worker of WORKERS) {
    const file = `dist/test-workers/${basename(worker)}`;
    const options = ['--platform', 'node', '--logLevel', 'warn'];
    execFileSync('node_modules/.bin/rolldown', [worker, '--file', file, ...options], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }
}
