import { execFileSync } from 'node:child_process';

/**
 * Compiles the sources once per run, since worker processes are started from `dist`, like in production; and bundles the
 * workers of tests, which see nothing but their own file, like the render worker.
 */
export default function build(): void {
  execFileSync('npm', ['run', 'build:tests', '--silent'], { stdio: 'inherit' });
}
