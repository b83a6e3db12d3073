import { describe, expect, test } from 'vitest';
import {
  countCores,
  planConnections,
  planMemory,
  planWorkers,
  readMemoryBytes,
  readOpenFilesLimit,
} from '../../src/config/machine-limits.ts';

/** Simulates a system that has only these files. */
const system = (files: Readonly<Record<string, string>>) => (path: string) => {
  const text = files[path];
  if (text === undefined) throw new Error('no such file');
  return text;
};
const v1 = (quotaUs: string, periodUs: string) => ({
  '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': quotaUs,
  '/sys/fs/cgroup/cpu/cpu.cfs_period_us': periodUs,
});
const v2 = (max: string) => ({ '/sys/fs/cgroup/cpu.max': max });
const allCores = countCores(system({}));

test.each([
  [v2('50000 100000\n'), 1],
  [v1('100000\n', '100000\n'), 1],
  [v2('max 100000\n'), allCores],
  [v1('-1\n', '100000\n'), allCores],
])('with the quotas %j there are %i cores', (files, cores) => {
  expect(countCores(system(files))).toBe(cores);
  expect(cores).toBeGreaterThanOrEqual(1);
});

describe('the memory', () => {
  const MACHINE = 8 * 2 ** 30;
  const V1 = '/sys/fs/cgroup/memory';
  const NO_LIMIT = '9223372036854771712\n';

  test.each([
    ['of the machine without a group', {}, MACHINE],
    [
      'of its own group of cgroup v2',
      { '/proc/self/cgroup': '0::/a\n', '/sys/fs/cgroup/a/memory.max': '1000\n' },
      1000,
    ],
    [
      'of a group around it',
      {
        '/proc/self/cgroup': '0::/a/b/c\n',
        '/sys/fs/cgroup/a/b/c/memory.max': 'max\n',
        '/sys/fs/cgroup/a/b/memory.max': '3000\n',
        '/sys/fs/cgroup/a/memory.max': '2000\n',
      },
      2000,
    ],
    [
      'of a container whose group is the root of its mount, regardless of its path',
      { '/proc/self/cgroup': '0::/../../b\n', '/sys/fs/cgroup/memory.max': '1000\n' },
      1000,
    ],
    [
      'of the machine if the groups have no limit',
      { '/proc/self/cgroup': '0::/a\n', '/sys/fs/cgroup/a/memory.max': 'max\n' },
      MACHINE,
    ],
    [
      'of its own group of cgroup v1',
      {
        '/proc/self/cgroup': '5:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n',
        [`${V1}/a/b/memory.limit_in_bytes`]: '1000\n',
        [`${V1}/a/memory.limit_in_bytes`]: NO_LIMIT,
      },
      1000,
    ],
    [
      'of a container in cgroup v1, whose path is that of the host',
      {
        '/proc/self/cgroup': '4:memory:/docker/0f\n',
        [`${V1}/memory.limit_in_bytes`]: '1000\n',
      },
      1000,
    ],
    [
      'of the machine if no limit of cgroup v1 is lower',
      {
        '/proc/self/cgroup': '4:memory:/\n',
        [`${V1}/memory.limit_in_bytes`]: NO_LIMIT,
      },
      MACHINE,
    ],
  ])('is that %s', (_, files, bytes) => {
    expect(readMemoryBytes(system(files), MACHINE)).toBe(bytes);
  });

  const mebibytes = (bytes: number) => Math.floor(bytes / 2 ** 20);
  const MAX_ORIGINAL = 50 * 2 ** 20;

  // Memory in MiB, cores → cache, kept originals, originals in use, uploads; light workers, heavy workers.
  test.each([
    [256, 1, [8, 2, 16, 8], [1, 256], [0, 256]],
    [512, 1, [8, 2, 16, 8], [1, 480], [0, 480]],
    [512, 4, [8, 2, 16, 8], [1, 480], [0, 480]],
    [1024, 1, [40, 10, 80, 20], [1, 338], [1, 670]],
    [1024, 2, [40, 10, 80, 20], [2, 504], [0, 504]],
    [2048, 2, [104, 26, 208, 52], [3, 338], [1, 1039]],
    [4096, 1, [232, 58, 464, 116], [2, 338], [1, 2222]],
    [4096, 4, [232, 58, 464, 116], [5, 338], [2, 1227]],
    [4480, 1, [256, 64, 512, 128], [2, 338], [1, 2222]],
    [65_536, 8, [256, 64, 512, 128], [9, 338], [8, 2222]],
  ])('of %i MiB and %i cores is divided', (memory, cores, shares, light, heavy) => {
    const { defaults, workersBytes, spareBytes } = planMemory(memory * 2 ** 20, cores);
    expect(Object.values(defaults).map(mebibytes)).toEqual(shares);
    const { workers, memoryBytes } = planWorkers(cores, workersBytes, MAX_ORIGINAL, spareBytes);
    expect([workers.light, mebibytes(memoryBytes.light)]).toEqual(light);
    expect([workers.heavy, mebibytes(memoryBytes.heavy)]).toEqual(heavy);
  });
});

describe('the connections', () => {
  test.each([
    ['Max open files            1024                 524288               files', 1_024],
    ['Max open files            unlimited            unlimited            files', Infinity],
    ['Max processes             1024                 524288               processes', undefined],
  ])('parse the limit of open files: %s', (line, limit) => {
    const text = `Limit  Soft Limit  Hard Limit  Units\n${line}\n`;
    expect(readOpenFilesLimit(system({ '/proc/self/limits': text }))).toBe(limit);
    expect(readOpenFilesLimit(system({}))).toBeUndefined();
  });

  test.each([
    [256, 6],
    [1_024, 6],
    [20_000, 70],
    [1_048_576, 6],
  ])('with a limit of %i files, leave room for %i others', (limit, others) => {
    const { byDefault, max } = planConnections(others, limit);
    expect(max + others).toBe(limit - 128);
    expect(byDefault).toBe(Math.min(max, 16_384));
  });

  test('are few, but at least one, with a low limit of open files', () => {
    expect(planConnections(50, 100)).toEqual({ byDefault: 2, max: 2 });
  });
});
