import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
} from 'node:fs';
import { getPriority } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import sharp from 'sharp';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import {
  anyJob,
  REAL_WORKER,
  type RenderJob,
  sharePool,
  usePools,
} from '../../support/processes/worker-pool.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { samples } from '../../support/test-app.ts';
import { atScale } from '../../support/test-scale.ts';

const start = usePools();

const MEBIBYTE = 2 ** 20;
const MEMORY_BYTES = 300 * MEBIBYTE;
/** Stacks of libvips' threads, which count as private memory. */
const STACK_BYTES = 64 * MEBIBYTE;
const both = (bytes: number) => ({ light: bytes, heavy: bytes });
const small = sharePool({ memoryBytes: both(MEMORY_BYTES), workers: { light: 0, heavy: 1 } });
const real = sharePool({ workerFile: REAL_WORKER, workers: { light: 1, heavy: 1 } });

describe('the logged confinement', () => {
  test('has all soft and hard limits of Linux, unlike the service, also for a replacement', async () => {
    const { renderer, say } = small.pool;
    const limits = { memoryBytes: MEMORY_BYTES, fileBytes: 0, descriptors: 64 };
    expect(renderer.confinement).toMatchObject({ ...limits, isFirstToKill: true });
    const own = readFileSync('/proc/self/limits', 'utf8');
    for (const round of [1, 2]) {
      const [processId = 0] = renderer.processIds;
      const theirs = readFileSync(`/proc/${processId}/limits`, 'utf8');
      for (const [name, limit] of [
        ['data size', MEMORY_BYTES + STACK_BYTES],
        ['core file size', 0],
        ['file size', 0],
        ['open files', 64],
      ]) {
        expect(theirs).toMatch(new RegExp(`^Max ${name} +${limit} +${limit} `, 'm'));
        if (name !== 'core file size')
          expect(own).not.toMatch(new RegExp(`^Max ${name} +${limit} `, 'm'));
      }
      expect(readFileSync(`/proc/${processId}/oom_score_adj`, 'utf8')).toBe('1000\n');
      expect(getPriority(processId)).toBe(15);
      if (round === 2) break;
      await expect(say('crash', { lane: 'heavy' })).rejects.toMatchObject({ status: 422 });
      expect(await say('next', { lane: 'heavy' })).toMatch(/ next$/);
      expect(renderer.processIds).not.toContain(processId);
    }
  });

  const hasSetpriv = spawnSync('setpriv', ['--version']).status === 0;
  const mounts = spawnSync('unshare', ['--user', '--map-root-user', '--mount', 'true']);
  test.skipIf(!hasSetpriv)(
    '(setpriv is installed) uses setpriv if bubblewrap is missing, with the PATH of an ordinary user',
    async () => {
      const { path: directory } = await useTemporaryDirectory();
      for (const name of readdirSync('/usr/bin').filter((program) => program !== 'bwrap')) {
        symlinkSync(join('/usr/bin', name), join(directory, name));
      }
      const { renderer } = await start({ environment: { PATH: directory } });
      expect(renderer.confinement).toMatchObject({
        sandbox: 'setpriv',
        isIsolated: false,
        isFiltered: false,
        hasPrivileges: false,
        noNewPrivileges: true,
        refusals: ['bubblewrap: bwrap is not installed'],
      });
    },
  );

  test.skipIf(mounts.status !== 0)('(unshare works) does not need /proc to be detected', () => {
    const load = `import('./dist/workers/confinement/sandbox.js')`;
    const script = 'mount -t tmpfs none /proc && exec "$0" --eval "$1"';
    const words = ['--user', '--map-root-user', '--mount', 'sh', '-c', script];
    const { status, stderr } = spawnSync('unshare', [...words, process.execPath, load]);
    expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: '' });
  });

  test('agrees with the priorities of the lanes, in every thread', async () => {
    const { renderer } = real.pool;
    expect(renderer.confinement?.priority).toEqual({ light: 5, heavy: 15 });
    for (const [lane, niceness] of [
      ['light', 5],
      ['heavy', 15],
    ] as const) {
      const [processId = 0] = renderer.processIdsOf(lane);
      const threads = readdirSync(`/proc/${processId}/task`).map(Number);
      expect(threads.length).toBeGreaterThan(1);
      expect(new Set(threads.map(getPriority))).toEqual(new Set([niceness]));
    }
    expect(getPriority()).toBe(0);
  });
});

describe('a confined worker (limits of Linux)', () => {
  const held = openSync('package.json', 'r');
  beforeAll(() => {
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
    return () => {
      vi.unstubAllEnvs();
      closeSync(held);
    };
  });
  /** Pool that starts while this process has a secret and an open file. */
  const usual = sharePool();

  test('gets no more memory than its limit, and fails only its own job', async () => {
    const say = (command: string) => small.pool.say(command, { lane: 'heavy' });
    expect(await say('allocate 50')).toBe('50 unbounded');
    // V8 aborts, or the allocation throws, depending on which allocates first.
    const outcome = await say('allocate 1000').catch((error: unknown) => error);
    if (typeof outcome === 'string') {
      expect(outcome).toMatch(/^\d+ Array buffer allocation failed$/);
      expect(Number.parseInt(outcome, 10)).toBeLessThan(300);
    } else {
      expect(outcome).toMatchObject({ code: 'MEDIA_TOO_LARGE' });
    }
    expect(await say('next')).toMatch(/ next$/);
    expect(small.counted().kills).toBe(0);
  });

  test('has a small heap, beyond which it ends', async () => {
    const { say } = usual.pool;
    // V8 adds its young generation to the limit.
    expect(Number(await say('heap-bound'))).toBeLessThan(256 * MEBIBYTE);
    await expect(say('devour')).rejects.toMatchObject({ code: 'MEDIA_TOO_LARGE' });
    expect(await say('next')).toMatch(/ next$/);
  });

  const sampleSize = { widthPx: 128, heightPx: 128 };
  const sampleJob: RenderJob = { ...anyJob, originalSize: sampleSize, size: sampleSize };

  const lowMemory = sharePool({ workerFile: REAL_WORKER, memoryBytes: both(256 * MEBIBYTE) });

  test('reports an original that does not fit into memory, and survives', async () => {
    const { renderer, render } = lowMemory.pool;
    const { processIds } = renderer;
    const tooLarge = Buffer.concat([samples.png, Buffer.alloc(280 * MEBIBYTE)]);
    await expect(render(tooLarge, sampleJob)).rejects.toMatchObject({
      code: 'MEDIA_TOO_LARGE',
      cause: { message: expect.stringContaining('Out of memory for the original') },
    });
    expect((await render(samples.png, sampleJob)).length).toBeGreaterThan(100);
    expect(renderer.processIds).toEqual(processIds);
    expect(lowMemory.counted()).toEqual({ restarts: 0, kills: 0, recycles: 0 });
  });

  const paint = ({ widthPx: width, heightPx: height }: RenderJob['size']) =>
    sharp({ create: { width, height, channels: 4, background: '#abcd' } });

  const formats = [
    ['webp', { lossless: true, effort: 0 }],
    ['png', { progressive: true }],
    ['jpeg', { progressive: true, chromaSubsampling: '4:4:4' }],
    ['avif', { effort: 0 }],
  ] as const;
  test.each(atScale<readonly (typeof formats)[number][]>(formats.slice(0, 1), formats))(
    'fails only the job that decodes more than its memory: %s',
    async (format, how) => {
      const size = { widthPx: 5_000, heightPx: 5_000 };
      const original = await paint(size).toFormat(format, how).toBuffer();
      const { render } = lowMemory.pool;
      const output = { format: 'webp', quality: 'lossless', webpEffort: 0 } as const;
      const job: RenderJob = { ...anyJob, originalSize: size, size, ...output };
      await expect(render(original, job)).rejects.toMatchObject({ status: 422 });
      expect((await render(samples.png, sampleJob)).length).toBeGreaterThan(100);
    },
  );

  test('decodes in memory what libvips would write to a file by default', async () => {
    // libvips' threshold is 100 MiB, and files cannot be written.
    const originalSize = { widthPx: 5_200, heightPx: 5_200 };
    const original = await paint(originalSize).webp({ lossless: true, effort: 0 }).toBuffer();
    const size = { widthPx: 16, heightPx: 16 };
    const job = { ...anyJob, originalSize, resize: 'scale', size } as const;
    const rendered = await real.pool.render(original, job);
    expect(await sharp(rendered).metadata()).toMatchObject({ format: 'png', width: 16 });
  });

  test('has only the environment that it needs', async () => {
    const environment: Record<string, string> = JSON.parse(await usual.pool.say('environment'));
    // If bash is the shell, it adds the program's name; bubblewrap adds the root as the working directory.
    const names = Object.keys(environment).filter((name) => name !== '_' && name !== 'PWD');
    expect(names.sort()).toEqual([
      ...['MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_', 'PATH'],
      ...[
        'UV_THREADPOOL_SIZE',
        'UV_USE_IO_URING',
        'VIPS_DISC_THRESHOLD',
        'VIPS_MAX_THREADS',
        'VIPS_WARNING',
      ],
    ]);
  });

  test('has no descriptor of the service', async () => {
    const theirs: string[] = JSON.parse(await usual.pool.say('descriptors'));
    // Descriptors that this process has inherited are passed on to every program that it starts.
    const inherited = ownDescriptors().flatMap(({ isKept, target }) => (isKept ? [target] : []));
    const targets = theirs.filter(
      (target) => !inherited.includes(target) && !/^(anon_inode:|gone$)/.test(target),
    );
    const ours = new Set(ownDescriptors().map(({ target }) => target));
    expect(ours).toContain(readlinkSync(`/proc/self/fd/${held}`));
    expect(targets.filter((target) => ours.has(target) && target !== '/dev/null')).toEqual([]);
    // Standard error, the channel, and the pipes that wake Node's event loops.
    expect(targets.filter((target) => target.startsWith('socket:'))).toHaveLength(2);
    // libuv keeps one in reserve: of `/dev/null`, or else of the worker's root.
    const others = targets.filter((target) => !/^(socket|pipe):|^(\/|\/dev\/null)$/.test(target));
    expect(others).toEqual([]);
  });

  test('has a library that the operator preloads', async () => {
    const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' });
    const [, library = ''] = /(\/\S*libm\S*) \(/.exec(libraries) ?? [];
    const { path: directory } = await useTemporaryDirectory();
    const copy = join(directory, 'preloaded.so');
    copyFileSync(library, copy);
    const environment = { PATH: process.env.PATH ?? '', LD_PRELOAD: copy };
    const { renderer, log, say } = await start({ environment });
    expect(renderer.confinement?.sandbox).toBe(usual.pool.renderer.confinement?.sandbox);
    expect(await say('loaded preloaded.so')).toBe('true');
    // The loader would report a library that it does not find.
    expect(log.entries).toEqual([]);
  });

  test('has packages that are symbolic links, as in the layout of pnpm', async () => {
    const { path: directory, put } = await useTemporaryDirectory();
    mkdirSync(join(directory, 'node_modules'));
    await put('package.json', '{"type":"module"}');
    copyFileSync(REAL_WORKER, join(directory, 'worker.js'));
    for (const name of ['sharp', 'libheif-js']) {
      symlinkSync(resolve('node_modules', name), join(directory, 'node_modules', name));
    }
    const workerFile = pathToFileURL(join(directory, 'worker.js'));
    const { renderer, render } = await start({ workerFile });
    expect(renderer.confinement?.sandbox).toBe(usual.pool.renderer.confinement?.sandbox);
    expect((await render(samples.png, sampleJob)).length).toBeGreaterThan(100);
  });
});

/** Descriptors of this process; `isKept`: inherited by programs. */
function ownDescriptors(): { readonly target: string; readonly isKept: boolean }[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const status = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8');
      const flags = /^flags:\t(\d+)$/m.exec(status)?.[1];
      const isKept = (Number.parseInt(flags ?? '0', 8) & O_CLOEXEC) === 0;
      return [{ target: readlinkSync(`/proc/self/fd/${descriptor}`), isKept }];
    } catch {
      return []; // the one that read the directory
    }
  });
}

/** open(2); missing in Node's constants. */
const O_CLOEXEC = 0o2000000;
