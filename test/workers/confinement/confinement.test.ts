import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Confinement } from '../../../src/workers/confinement/confinement.ts';
import { findLaunchers, type Launcher } from '../../../src/workers/confinement/launchers.ts';
import { SCRIPTED_WORKER, usePools } from '../../support/processes/worker-pool.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { samples } from '../../support/test-app.ts';
import { startReal } from './real-workers.ts';

const start = usePools();

const isLinux = process.platform === 'linux';
const MEBIBYTE = 2 ** 20;
const MEMORY_BYTES = 300 * MEBIBYTE;

const server = createServer((socket) => socket.destroy());
afterAll(() => server.close());

/** What a worker gets that connects to a port of ours. */
function expectedOfSockets(confinement: Confinement | undefined): string {
  if (confinement?.systemCalls === 'filtered') return 'EAFNOSUPPORT';
  return confinement?.network === 'none' ? 'ENETUNREACH' : 'connected';
}

describe('the confinement as it is logged', () => {
  test.skipIf(!isLinux)(
    'has every limit on Linux, soft and hard, and none of it is ours',
    async () => {
      const { renderer } = await start({ memoryBytes: MEMORY_BYTES });
      expect(renderer.confinement).toMatchObject({
        memoryBytes: MEMORY_BYTES,
        fileBytes: 0,
        descriptors: 64,
        isFirstToKill: true,
      });
      const [processId] = renderer.processIds;
      const limits = readFileSync(`/proc/${processId}/limits`, 'utf8');
      const own = readFileSync('/proc/self/limits', 'utf8');
      for (const [name, limit] of [
        ['data size', MEMORY_BYTES],
        ['core file size', 0],
        ['file size', 0],
        ['open files', 64],
      ]) {
        expect(limits).toMatch(new RegExp(`^Max ${name} +${limit} +${limit} `, 'm'));
        if (name !== 'core file size') {
          expect(own).not.toMatch(new RegExp(`^Max ${name} +${limit} `, 'm'));
        }
      }
      expect(readFileSync(`/proc/${processId}/oom_score_adj`, 'utf8')).toBe('1000\n');
    },
  );

  test.skipIf(isLinux)('has none elsewhere', async () => {
    const { renderer } = await start({ memoryBytes: MEMORY_BYTES });
    expect(renderer.confinement).toMatchObject({
      network: 'shared',
      user: 'shared',
      memoryBytes: undefined,
      fileBytes: undefined,
      descriptors: undefined,
      noNewPrivileges: false,
      isFirstToKill: false,
    });
  });

  test('agrees with whether a worker reaches a listening port of ours', async () => {
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { renderer, say } = await start();
    expect(await say(`connect ${port}`)).toBe(expectedOfSockets(renderer.confinement));
  });

  test.skipIf(!isLinux)('agrees with whether it can read our environment (proc(5))', async () => {
    const { renderer, say } = await start();
    const { processes, user } = renderer.confinement ?? {};
    const open = user === 'shared' ? /^done \d+$/ : /^EACCES$/;
    // Its parent is then the first process of its namespace, which has nothing of ours.
    expect(await say('read-parent')).toMatch(processes === 'own' ? /^(EACCES|done \d+)$/ : open);
  });

  test('agrees with the priorities of the lanes, in every thread', async () => {
    const { renderer, say } = await start({ workers: { light: 1, heavy: 1 } });
    expect(renderer.confinement?.priority).toEqual({ light: 5, heavy: 19 });
    for (const [lane, niceness] of [
      ['light', 5],
      ['heavy', 19],
    ] as const) {
      expect(getPriority(renderer.processIdsOf(lane)[0] ?? 0)).toBe(niceness);
      if (!isLinux) continue;
      const threads: number[] = JSON.parse(await say('priorities', { lane }));
      expect(threads.length).toBeGreaterThan(1);
      expect(new Set(threads)).toEqual(new Set([niceness]));
    }
    expect(getPriority()).toBe(0);
  });

  test('holds for a replacement too', async () => {
    const { renderer, say } = await start({ workers: { light: 0, heavy: 1 } });
    await expect(say('crash', { lane: 'heavy' })).rejects.toMatchObject({ status: 422 });
    expect(await say('next', { lane: 'heavy' })).toMatch(/ next$/);
    const [replacement = 0] = renderer.processIds;
    expect(getPriority(replacement)).toBe(19);
    if (isLinux) {
      expect(readFileSync(`/proc/${replacement}/limits`, 'utf8')).toMatch(
        /^Max data size +1073741824 +1073741824 /m,
      );
    }
  });
});

describe.skipIf(!isLinux)('a confined worker (limits of Linux)', () => {
  test('gets no more memory than it may, and fails its own job alone', async () => {
    const { renderer, say } = await start({ memoryBytes: MEMORY_BYTES });
    expect(await say('allocate 50')).toBe('50 unbounded');
    // V8 aborts, or the allocation throws: it depends on which of them asks first.
    const outcome = await say('allocate 1000').catch((error: unknown) => error);
    if (typeof outcome === 'string') {
      expect(outcome).toMatch(/^\d+ Array buffer allocation failed$/);
      expect(Number.parseInt(outcome, 10)).toBeLessThan(300);
    } else {
      expect(outcome).toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    }
    expect(await say('next')).toMatch(/ next$/);
    expect(renderer.counters.kills).toBe(0);
  });

  test('has a small heap, beyond which it ends', async () => {
    const { say } = await start();
    // V8 adds its young generation to the bound that it was given.
    expect(Number(await say('heap-bound'))).toBeLessThan(256 * MEBIBYTE);
    await expect(say('devour')).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    expect(await say('next')).toMatch(/ next$/);
  });

  test('that has no room for an original says so, and lives on', async () => {
    const { renderer, render } = await startReal(start, 256 * MEBIBYTE);
    const { processIds } = renderer;
    const tooLarge = Buffer.concat([samples.png, Buffer.alloc(280 * MEBIBYTE)]);
    await expect(render(tooLarge)).rejects.toMatchObject({
      code: 'MEDIA_TOO_LARGE',
      cause: { message: expect.stringContaining('no memory for an original') },
    });
    expect((await render(samples.png)).length).toBeGreaterThan(100);
    expect(renderer.processIds).toEqual(processIds);
    expect(renderer.counters).toEqual({ restarts: 0, kills: 0, recycles: 0 });
  });

  test('writes no file', async () => {
    const { path: folder } = await useTemporaryFolder();
    const { say } = await start();
    // Where it does not see the folder, or the user may not write there either, that is said first.
    expect(await say(`write-file ${join(folder, 'x')}`)).toMatch(/^(EFBIG|EACCES|ENOENT)$/);
    expect(existsSync(join(folder, 'x')) && readFileSync(join(folder, 'x')).length > 0).toBe(false);
  });

  test('holds no descriptor of ours', async () => {
    await using file = await open('package.json');
    const { renderer, say } = await start();
    const held: string[] = JSON.parse(await say('descriptors'));
    const targets = held.map((line) => line.replace(/^\d+ /, '')).filter((it) => it !== 'gone');
    const ours = new Set(ownDescriptors().map(({ target }) => target));
    expect(ours).toContain(readlinkSync(`/proc/self/fd/${file.fd}`));
    // What we were handed ourselves when we were started goes on to every program that we start.
    const handedDown = ownDescriptors().flatMap(({ isKept, target }) => (isKept ? [target] : []));
    const own = targets.filter((target) => !handedDown.includes(target));
    const nameless = /^(\/dev\/null|anon_inode:\[(event(fd|poll)|io_uring)\])$/;
    const named = own.filter((target) => !nameless.test(target));
    expect(named.filter((target) => ours.has(target))).toEqual([]);
    // Standard error and the channel, and the pipes by which Node's event loops wake themselves.
    expect(named.filter((target) => target.startsWith('socket:'))).toHaveLength(2);
    // libuv keeps one in reserve: of `/dev/null`, or else of the root, which is the worker's own then.
    const spare = renderer.confinement?.files === 'own' ? '/' : undefined;
    const others = named.filter((target) => !/^(socket|pipe):/.test(target));
    expect(others.filter((target) => target !== spare)).toEqual([]);
  });
});

describe.skipIf(!isLinux)('a library that the operator has preloaded', () => {
  test('is there for the worker, too', async () => {
    const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' });
    const [, library = ''] = /(\/\S*libm\S*) \(/.exec(libraries) ?? [];
    const { path: folder } = await useTemporaryFolder();
    chmodSync(folder, 0o755);
    const copy = join(folder, 'preloaded.so');
    copyFileSync(library, copy);
    const environment = { PATH: process.env.PATH ?? '', LD_PRELOAD: copy };
    const { renderer, log, say } = await start({ environment });
    const without = await start();
    expect(renderer.confinement?.by).toBe(without.renderer.confinement?.by);
    expect(await say('loaded preloaded.so')).toBe('true');
    // The loader would complain of one that it does not find.
    expect(log.entries).toEqual([]);
  });
});

describe('the environment of a worker', () => {
  test('has no more than it needs', async () => {
    process.env.AWS_SECRET_ACCESS_KEY = 'secret';
    const { say } = await start();
    const environment: Record<string, string> = JSON.parse(await say('environment'));
    delete process.env.AWS_SECRET_ACCESS_KEY;
    // bash, where it is the shell, adds the name of the program, and bubblewrap the root as the working folder.
    const names = Object.keys(environment).filter((name) => name !== '_' && name !== 'PWD');
    expect(names.sort()).toEqual([
      'MALLOC_ARENA_MAX',
      'MALLOC_MMAP_THRESHOLD_',
      'MALLOC_TRIM_THRESHOLD_',
      'PATH',
      'UV_THREADPOOL_SIZE',
      'UV_USE_IO_URING',
      'VIPS_DISC_THRESHOLD',
      'VIPS_WARNING',
    ]);
  });
});

describe('the ways to start a worker', () => {
  const find = async (workerFile: string): Promise<Launcher[]> => {
    const launchers: Launcher[] = [];
    const environment = { PATH: process.env.PATH ?? '' };
    const program = { workerFile, environment };
    for await (const launcher of findLaunchers(program)) launchers.push(launcher);
    return launchers;
  };

  test('are those that work here, and none for a file that cannot be read', async () => {
    const found = await find(SCRIPTED_WORKER.pathname);
    expect(found.length).toBeGreaterThan(0);
    // Without a limit only where there is no other way.
    const bare = found.filter(({ launch }) => launch(5, MEMORY_BYTES).command === process.execPath);
    expect(bare).toHaveLength(isLinux ? 0 : 1);
    expect(await find('/nowhere/worker.js')).toMatchObject([
      { name: 'nothing', processes: 'shared', network: 'shared', user: 'shared' },
    ]);
  });

  test('take no value for shell text', async () => {
    const { path: folder } = await useTemporaryFolder();
    await find(`$(touch ${folder}/a); touch ${folder}/b; \`touch ${folder}/c\``);
    expect(readdirSync(folder)).toEqual([]);
  });
});

/** Our own descriptors; `isKept`: not closed when we start a program. */
function ownDescriptors(): { readonly target: string; readonly isKept: boolean }[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const flags = /^flags:\t(\d+)$/m.exec(
        readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'),
      )?.[1];
      const isKept = (Number.parseInt(flags ?? '0', 8) & O_CLOEXEC) === 0;
      return [{ target: readlinkSync(`/proc/self/fd/${descriptor}`), isKept }];
    } catch {
      return []; // the one that read the folder
    }
  });
}

/** open(2); Node does not name it. */
const O_CLOEXEC = 0o2000000;
