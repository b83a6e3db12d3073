import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { resourceUsage } from 'node:process';
import { expect, test } from 'vitest';
import { openSweptStore } from '../../support/result-directory/result-directory.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** Memory does not depend on the number: two million files were measured by hand. */
const DIRECTORIES = 25_000;
const FILES_PER_DIRECTORY = 4;

test('a sweep of 100 000 files costs no memory', { timeout: 600_000 }, async () => {
  const { path: directory } = await useTemporaryDirectory();
  const store = await openSweptStore({ directory, maxBytes: 1e12 });
  const names = Array.from({ length: FILES_PER_DIRECTORY }, (_, at) =>
    `${at}`.repeat(16).concat('-', '0'.repeat(16)),
  );
  const script = `
    mkdir banners && cd banners && seq ${DIRECTORIES} | xargs mkdir
    for id in $(seq ${DIRECTORIES}); do
      for name in ${names.join(' ')}; do : >$id/$name; done
    done`;
  // In another process, to measure only its memory.
  execFileSync('sh', ['-c', script], { cwd: join(directory, 'results') });
  const before = resourceUsage().maxRSS;
  await store.sweep();
  // Files, their directories, and the top directory.
  expect(store.usage()?.heldBytes).toBe(4096 * (DIRECTORIES * (FILES_PER_DIRECTORY + 1) + 1));
  expect(1024 * (resourceUsage().maxRSS - before)).toBeLessThan(40 * 1024 ** 2);
  await rm(join(directory, 'results'), { recursive: true }); // a hook would have less time
});
