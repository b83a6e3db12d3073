import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { resourceUsage } from 'node:process';
import { expect, test } from 'vitest';
import { openSweptFolder } from '../../support/result-folder/result-folder.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

/** Two million were measured by hand: memory does not depend on the number. */
const FOLDERS = 25_000;
const FILES_PER_FOLDER = 4;

test('a sweep of 100 000 files costs no memory', { timeout: 600_000 }, async () => {
  const { path: folder } = await useTemporaryFolder();
  const store = await openSweptFolder({ folder, maxBytes: 1e12 });
  const names = Array.from({ length: FILES_PER_FOLDER }, (_, at) =>
    `${at}`.repeat(16).concat('-', '0'.repeat(16)),
  );
  const script = `
    mkdir banners && cd banners && seq ${FOLDERS} | xargs mkdir
    for id in $(seq ${FOLDERS}); do
      for name in ${names.join(' ')}; do : >$id/$name; done
    done`;
  // In another process, whose memory is not ours.
  execFileSync('sh', ['-c', script], { cwd: join(folder, 'results') });
  const before = resourceUsage().maxRSS;
  await store.sweep();
  // The files, their folders, and the folder of these.
  expect(store.usage()?.heldBytes).toBe(4096 * (FOLDERS * (FILES_PER_FOLDER + 1) + 1));
  expect(1024 * (resourceUsage().maxRSS - before)).toBeLessThan(40 * 1024 ** 2);
  await rm(join(folder, 'results'), { recursive: true }); // a hook would have less time
});
