import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { resourceUsage } from 'node:process';
import { expect, test } from 'vitest';
import { openFolder } from '../../support/result-folder/result-folder.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { addressOf, ignoreSize, resultOf } from '../contracts/result-store.contract.ts';

/** Two million were measured by hand: memory does not depend on the number. */
const FOLDERS = 25_000;
const FILES_PER_FOLDER = 4;
const READS = 2_000;
const { signal } = new AbortController();

/** Makes a folder of a rendering and of so many folders of empty files; in another process, whose memory is not ours. */
async function fill(folders: number): Promise<string> {
  const { path: folder } = await useTemporaryFolder();
  const store = await openFolder({ folder, maxBytes: 1e12 });
  await store.write(addressOf(), resultOf('a rendering'));
  const names = Array.from({ length: FILES_PER_FOLDER }, (_, at) =>
    `${at}`.repeat(16).concat('-', '0'.repeat(16)),
  );
  const script = `
    mkdir banners && cd banners && seq ${folders} | xargs -r mkdir
    for id in $(seq ${folders}); do
      for name in ${names.join(' ')}; do : >$id/$name; done
    done`;
  execFileSync('sh', ['-c', script], { cwd: join(folder, 'results') });
  return folder;
}

/** Opens, reads and sweeps a folder. */
async function measure(folder: string) {
  const startedMs = performance.now();
  const store = await openFolder({ folder, maxBytes: 1e12 });
  const openedMs = performance.now() - startedMs;
  const before = process.cpuUsage();
  for (let turn = 0; turn < READS; turn += 1)
    expect(await store.read(addressOf(), signal, ignoreSize)).toBeDefined();
  const { user, system } = process.cpuUsage(before);
  await store.sweep();
  const { heldBytes = 0 } = store.usage() ?? {};
  return {
    openedMs,
    /** CPU time of reads, before a sweep. */
    readsMs: (user + system) / 1_000,
    /** Most resident memory so far, the sweep included. */
    peakBytes: 1024 * resourceUsage().maxRSS,
    heldBytes,
  };
}

test('a folder of 100 000 files costs no memory, and neither the start nor reads are slower', {
  timeout: 600_000,
}, async () => {
  const [empty, full] = [await fill(0), await fill(FOLDERS)];
  await measure(empty); // the first reads compile
  const [few, many] = [await measure(empty), await measure(full)];
  // The files, those in the folder of the one that is read, and the folders.
  expect(many.heldBytes - few.heldBytes).toBe(4096 * (FOLDERS * (FILES_PER_FOLDER + 1) + 1));
  expect(many.openedMs - few.openedMs).toBeLessThan(2_000);
  expect(many.peakBytes - few.peakBytes).toBeLessThan(40 * 1024 ** 2);
  expect(many.readsMs).toBeLessThan(2 * few.readsMs);
  await rm(join(full, 'results'), { recursive: true }); // a hook would have less time
});
