import { describe, expect, test } from 'vitest';
import { type Contest, holdContest, type Player } from '../../../bench/compare/contest.ts';
import { formatComparison, isReached, judgeAims } from '../../../bench/compare/report.ts';

const contest: Contest = {
  name: 'avatars',
  note: 'Every response is rendered.',
  measures: ['perSecond', 'p50Ms'],
  entries: [
    { name: 'Darkroom', turns: [{ perSecond: 95, p50Ms: 4 }] },
    { name: 'raw sharp', turns: [{ perSecond: 100, p50Ms: 3 }] },
    { name: 'no server', turns: [{ perSecond: 400 }] },
  ],
};
const aim = { contest: 'avatars', of: 'Darkroom', to: 'raw sharp', atLeast: 0.95 };

function report(aims: Parameters<typeof judgeAims>[1]): string {
  return formatComparison({
    contests: [contest],
    aims: judgeAims([contest], aims),
    absences: [{ contest: 'avatars', who: 'nginx', why: 'needs nginx' }],
    left: ['stampede'],
    versions: { Node: 'v20' },
    command: 'npm run bench',
  });
}

describe('the report', () => {
  test('says whether an aim was reached', () => {
    expect(report([aim])).toContain(
      '| avatars: Darkroom / raw sharp | at least 0.95 | 0.95 (0.95 to 0.95) | reached |  |',
    );
    expect(report([{ ...aim, atLeast: 0.96 }])).toContain('| missed |');
  });

  test('an aim that was not measured is not reached', () => {
    const [judged] = judgeAims([contest], [{ ...aim, to: 'IPX' }]);
    expect(judged && isReached(judged)).toBe(false);
    expect(report([{ ...aim, to: 'IPX' }])).toContain('| – | not measured |');
  });

  test('names what is missing', () => {
    const text = report([]);
    expect(text).toContain('Not measured in this run: stampede.');
    expect(text).toContain('| avatars | nginx | needs nginx |');
    expect(text).toContain('| no server | 400 (0 %) | – | 0.24 (0.24 to 0.24) |');
  });
});

describe('a contest', () => {
  test('has its players take turns, does not count practice, and sees all of them off', async () => {
    const calls: string[] = [];
    const player = (name: string): Player => ({
      name,
      play: async (round) => {
        calls.push(`${name}${round}`);
        return { perSecond: round };
      },
      leave: async () => calls.push(`${name} leaves`),
    });
    const plan = {
      name: 'all',
      note: '',
      measures: ['perSecond'],
      rounds: 2,
      hasPractice: true,
    } as const;
    const { entries, measures } = await holdContest(plan, [player('A'), player('B')]);
    expect(calls).toEqual(['A0', 'B0', 'A1', 'B1', 'A2', 'B2', 'A leaves', 'B leaves']);
    const turns = [1, 2].map((perSecond) => ({ perSecond, othersShare: expect.any(Number) }));
    expect(entries).toEqual([
      { name: 'A', turns },
      { name: 'B', turns },
    ]);
    expect(measures).toEqual(['perSecond', 'othersShare']);
  });
});
