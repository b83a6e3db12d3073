import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createTestApp, type TestApp } from '../support/test-app.ts';

const isLinux = process.platform === 'linux';

let app: TestApp | undefined;
afterEach(() => app?.close());

/** Clock ticks of CPU time that a process has used (proc(5): values 14 and 15 of its stat). */
function cpuTicksOf(processId: number): number {
  const stat = readFileSync(`/proc/${processId}/stat`, 'utf8');
  const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(values[11]) + Number(values[12]);
}

describe.skipIf(!isLinux)(
  'kill -9 of a worker in mid-job (which one is at work is known by proc(5))',
  () => {
    test('costs no request', async () => {
      const running = await createTestApp({
        settings: { WORKERS: '2', QUEUE_TIMEOUT_MS: '600000', TRANSFORM_TIMEOUT_MS: '600000' },
      });
      app = running;
      const { workers, originals } = running;
      // So large that it is heavy: a light render that takes seconds, as on a machine with much else to do, is
      // ended, and begins anew among the heavy ones.
      const noise = { type: 'gaussian', mean: 128, sigma: 10 } as const;
      const original = await sharp({
        create: { width: 1_100, height: 1_100, channels: 3, background: '#000', noise },
      })
        .png()
        .toBuffer();
      const port = await running.listen();
      const get = async (name: string): Promise<number> => {
        const url = `http://127.0.0.1:${port}/attachments/1/2/${name}?format=webp&quality=high`;
        const response = await fetch(url);
        await response.arrayBuffer();
        return response.status;
      };
      originals.put('attachments/1/2/warm.png', original);
      expect(await get('warm.png')).toBe(200);

      const names = Array.from({ length: 6 }, (_, index) => `${index}.png`);
      for (const name of names) originals.put(`attachments/1/2/${name}`, original);
      const before = new Map(workers.processIds.map((pid) => [pid, cpuTicksOf(pid)]));
      const statuses = Promise.all(names.map(get));
      const atWork = await vi.waitUntil(
        () => workers.processIds.find((pid) => cpuTicksOf(pid) > (before.get(pid) ?? Infinity) + 3),
        { interval: 1, timeout: 250_000 },
      );
      process.kill(atWork, 'SIGKILL');

      expect((await statuses).sort()).toEqual(Array(6).fill(200));
      expect(workers.counters).toEqual({ restarts: 1, kills: 0, recycles: 0 });
      expect(running.log.errors).toEqual([]);
    }, 300_000); // heavy renders have the lowest priority on the machine
  },
);
