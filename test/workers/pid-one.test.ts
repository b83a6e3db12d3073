import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { useService } from '../support/processes/service-process.ts';
import { readProcessFile, treeOf, workersOf } from '../support/processes/worker-ids.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { atScale } from '../support/test-scale.ts';
import { hasFfmpeg } from '../support/videos.ts';

const canBePidOne = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

const isDefunct = (pid: number) => /^State:\tZ/m.test(readProcessFile(pid, 'status'));

async function useFirstProcess(environment: Readonly<Record<string, string>> = {}) {
  const { path } = await useTemporaryDirectory();
  cpSync('fixtures/video/clip-h264.mp4', join(path, 'attachments/1/2/clip.mp4'));
  cpSync('fixtures/originals/attachments', join(path, 'attachments'), { recursive: true });
  const { origin, pid } = await useService(
    { STORAGE_DIR: path, ...environment },
    { isPidOne: true },
  );
  let widthPx = 9;
  return {
    processes: () => treeOf(pid),
    workers: () => workersOf(pid),
    defunct: () => treeOf(pid).filter(isDefunct),
    /** Renders a new size each time; returns the status. */
    render: async (signal?: AbortSignal): Promise<number> => {
      widthPx += 1;
      const url = `${origin}/attachments/1/2/clip.mp4?format=png&width=${widthPx}`;
      const response = await fetch(url, signal && { signal });
      await response.arrayBuffer();
      return response.status;
    },
  };
}

describe.skipIf(!canBePidOne || !hasFfmpeg)('(unshare, ffmpeg) a service that is PID 1', () => {
  test('leaves no process behind after posters, or after clients abort them at any step', async () => {
    const { render, processes, defunct } = await useFirstProcess();
    expect(await render()).toBe(200);
    await expect.poll(defunct).toEqual([]);
    const before = processes().length;
    const rounds = atScale(15, 40);
    for (let round = 1; round < rounds; round += 1) expect(await render()).toBe(200);
    for (let round = 0; round < rounds; round += 1) {
      // The rounds cover about 100 ms, from before the decoder's start until after its end.
      const signal = AbortSignal.timeout(round * 8);
      await render(signal).catch(() => undefined);
    }
    expect(await render()).toBe(200);
    await expect.poll(defunct).toEqual([]);
    await expect.poll(() => processes().length).toBeLessThanOrEqual(before);
  }, 60_000);

  test('leaves no process behind after workers crash, are killed or exceed their deadline', async () => {
    const { render, workers, defunct } = await useFirstProcess({ TRANSFORM_TIMEOUT_MS: '5000' });
    expect(await render()).toBe(200);
    for (const [signal, status] of [
      ['SIGSEGV', 200],
      ['SIGKILL', 200],
      ['SIGSTOP', 503],
    ] as const) {
      for (const pid of workers()) process.kill(pid, signal);
      expect(await render()).toBe(status);
      await expect.poll(defunct).toEqual([]);
    }
  });
});
