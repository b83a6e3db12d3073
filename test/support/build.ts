import { execFileSync } from 'node:child_process';

/** Compiles the sources and bundles the test workers, because workers run from `dist`, as in production. */
export default function build(): void {
  execFileSync('npm', ['run', 'build:tests', '--silent'], { stdio: 'inherit' });
}
