import { execFileSync } from 'node:child_process';

/** Compiles the sources once per run: worker processes are forked from `dist`, like in production. */
export default function build(): void {
  execFileSync('npm', ['run', 'build', '--silent'], { stdio: 'inherit' });
}
