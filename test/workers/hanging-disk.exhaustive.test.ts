import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { mountFaultyDisk } from '../support/processes/faulty-disk.ts';
import { startService } from '../support/processes/service-process.ts';
import { openFilesBelow, workersOf } from '../support/processes/worker-ids.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const AVATAR = '/avatars/1/ab12.webp';

/** Maximum time of a response that does not wait for a disk. */
const MAX_RESPONSE_MS = 5_000;

// A new program closes the files that it inherits, and this close waits for their disk.
test('a worker that ends while the disk of renderings hangs is replaced, and hits continue', async (context) => {
  const { path } = await useTemporaryDirectory();
  for (const name of ['disk/renderings', 'mounted']) {
    mkdirSync(join(path, name), { recursive: true });
  }
  const mounted = join(path, 'mounted');
  const disk = await mountFaultyDisk(mounted, join(path, 'disk'));
  if (disk === undefined) return context.skip('takes /dev/fuse, fuse3 and python3-fusepy');
  onTestFinished(() => disk.close());
  const service = await startService({
    RESULT_STORE: 'filesystem',
    RESULT_STORE_DIR: join(mounted, 'renderings'),
  });
  onTestFinished(async () => {
    await disk.setFault('renderings', 'none');
    await service.stop();
  });
  const get = async (size: number): Promise<number> => {
    const response = await fetch(`${service.origin}${AVATAR}?size=${size}`, {
      signal: AbortSignal.timeout(MAX_RESPONSE_MS),
    });
    await response.arrayBuffer();
    return response.status;
  };
  expect(await get(64)).toBe(200);
  await expect.poll(() => workersOf(service.pid).length).toBe(3);
  const before = workersOf(service.pid);
  await disk.setFault('renderings', 'delay 0.5');
  expect(await get(80)).toBe(200);
  const open = () => openFilesBelow(mounted, service.pid).length;
  await expect.poll(open, { interval: 5 }).toBeGreaterThan(0);
  await disk.setFault('renderings', 'hang');
  for (const worker of before) process.kill(worker, 'SIGKILL');
  const isReplaced = (): boolean => {
    const workers = workersOf(service.pid);
    return workers.length === before.length && !workers.some((pid) => before.includes(pid));
  };
  for (let round = 0; round < 50 || !isReplaced(); round += 1) expect(await get(64)).toBe(200);
  expect(await get(96)).toBe(200);
  expect(open()).toBeGreaterThan(0);
});
