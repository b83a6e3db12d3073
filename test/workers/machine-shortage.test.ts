import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { readProcessFile } from '../support/processes/worker-ids.ts';
import {
  anyJob,
  noLosses,
  REAL_WORKER,
  type RenderJob,
  type TestPool,
  usePools,
} from '../support/processes/worker-pool.ts';

const start = usePools();

/** Sets a limit of the only worker, as its user: root alone cannot change limits of others. */
function limit(pool: TestPool, limits: (pid: number) => string): void {
  const [pid = 0] = pool.renderer.processIds;
  const [, user = ''] = /^Uid:\t(\d+)/m.exec(readProcessFile(pid, 'status')) ?? [];
  const prlimit = ['prlimit', '--pid', String(pid), limits(pid)];
  execFileSync('setpriv', ['--reuid', user, '--regid', user, '--clear-groups', ...prlimit]);
}

const still = (source: RenderJob['source'], edgePx: number): RenderJob => ({
  ...anyJob,
  source,
  originalSize: { widthPx: edgePx, heightPx: edgePx },
});

const overload = { code: 'OVERLOADED', bottleneck: 'workers', retryAfterSeconds: 1 };

const MEBIBYTE = 2 ** 20;
const bothOf = (bytes: number) => ({ light: bytes, heavy: bytes });

describe.skipIf(process.getuid?.() !== 0)('(root) a worker', () => {
  test('renders every format while the machine has no thread left, from its first job on', async () => {
    const pool = await start({ workerFile: REAL_WORKER });
    limit(pool, () => '--nproc=1');
    const small = sharp({ create: { width: 9, height: 9, channels: 3, background: '#a0b0c0' } });
    for (const format of ['jpeg', 'png', 'webp', 'gif', 'avif'] as const) {
      const rendered = await pool.render(await small.toFormat(format).toBuffer(), still(format, 9));
      expect(rendered.length, format).toBeGreaterThan(0);
    }
    const heic = readFileSync('fixtures/heic/flat-tile.heic');
    await expect(pool.render(heic, still('heic', 512))).resolves.toBeDefined();
    expect(pool.renderer.counters).toEqual(noLosses);
  });

  test('reports overload while the machine has less memory left than the limit of the worker, and recovers', async () => {
    // An interlaced PNG needs all pixels in memory: 192 MB in one piece, far more than is left.
    const create = { width: 8000, height: 8000, channels: 3, background: '#a0b0c0' } as const;
    const png = await sharp({ create }).png({ progressive: true, compressionLevel: 1 }).toBuffer();
    const shrunk = {
      ...still('png', 8000),
      resize: 'scale',
      size: { widthPx: 9, heightPx: 9 },
    } as const;
    const bounded = await start({ workerFile: REAL_WORKER, memoryBytes: bothOf(256 * MEBIBYTE) });
    await expect(bounded.render(png, shrunk)).rejects.toMatchObject({ code: 'MEDIA_TOO_LARGE' });
    const pool = await start({ workerFile: REAL_WORKER, memoryBytes: bothOf(1024 * MEBIBYTE) });
    const sizeOf = (pid: number) =>
      Number(/^VmSize:\s+(\d+) kB/m.exec(readProcessFile(pid, 'status'))?.[1]) * 1024;
    limit(pool, (pid) => `--as=${sizeOf(pid) + 40 * MEBIBYTE}:`);
    await expect(pool.render(png, shrunk)).rejects.toMatchObject(overload);
    limit(pool, () => '--as=unlimited:');
    await expect(pool.render(png, shrunk)).resolves.toBeDefined();
    expect(pool.renderer.counters).toEqual(noLosses);
  });

  test('reports overload while no descriptor is left to open a decoder, renders everything else, and recovers', async () => {
    const pool = await start({ workerFile: REAL_WORKER });
    limit(pool, () => '--nofile=0:');
    const heic = readFileSync('fixtures/heic/flat-tile.heic');
    await expect(pool.render(heic, still('heic', 512))).rejects.toMatchObject(overload);
    const png = await sharp({ create: { width: 9, height: 9, channels: 3, background: '#fff' } })
      .png()
      .toBuffer();
    await expect(pool.render(png, still('png', 9))).resolves.toBeDefined();
    limit(pool, () => '--nofile=64:');
    await expect(pool.render(heic, still('heic', 512))).resolves.toBeDefined();
    expect(pool.renderer.counters).toEqual(noLosses);
  });
});
