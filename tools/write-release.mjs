/**
 * Writes dist/release.json at the end of a build: the git commit that was built, if it is known. GIT_COMMIT names it for
 * builds without a repository, such as an image's; otherwise git does.
 */

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

/** Digits of a commit that identify it. */
const COMMIT_DIGITS = 12;

function readCommit() {
  if (process.env.GIT_COMMIT) return process.env.GIT_COMMIT;
  try {
    const root = new URL('..', import.meta.url);
    return execFileSync('git', ['rev-parse', 'HEAD'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    return ''; // no repository, or no git
  }
}

const commit = String(readCommit()).trim().slice(0, COMMIT_DIGITS);
const release = commit === '' ? {} : { commit };
writeFileSync(new URL('../dist/release.json', import.meta.url), `${JSON.stringify(release)}\n`);
