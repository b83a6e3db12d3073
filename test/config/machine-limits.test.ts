import { describe, expect, test } from 'vitest';
import {
  countCores,
  planConnections,
  readOpenFilesLimit,
} from '../../src/config/machine-limits.ts';

/** A system that has these files and no other. */
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

describe('the connections', () => {
  test.each([
    ['Max open files            1024                 524288               files', 1_024],
    ['Max open files            unlimited            unlimited            files', Infinity],
    ['Max processes             1024                 524288               processes', undefined],
  ])('know the limit of open files: %s', (line, limit) => {
    const text = `Limit  Soft Limit  Hard Limit  Units\n${line}\n`;
    expect(readOpenFilesLimit(system({ '/proc/self/limits': text }))).toBe(limit);
    expect(readOpenFilesLimit(system({}))).toBeUndefined();
  });

  test.each([
    [256, 6],
    [1_024, 6],
    [20_000, 70],
    [1_048_576, 6],
  ])('leave room, of %i files, for %i others', (limit, others) => {
    const { byDefault, most } = planConnections(others, limit);
    expect(most + others).toBe(limit - 128);
    expect(byDefault).toBe(Math.min(most, 16_384));
  });

  test('are few, but more than none, where hardly any file may be open', () => {
    expect(planConnections(50, 100)).toEqual({ byDefault: 2, most: 2 });
  });
});
