import { describe, expect, test } from 'vitest';
import { type Absence, compete } from '../../../bench/compare/contest.ts';
import { type Contest, formatComparison, judgeAims } from '../../../bench/compare/report.ts';

const contest: Contest = {
  name: 'avatars',
  note: 'Every response is rendered.',
  decidedBy: 'perSecond',
  aims: [{ of: 'Darkroom', to: 'raw sharp', atLeast: 0.95 }],
  entries: [
    { name: 'Darkroom', turns: [{ perSecond: 95, p50Ms: 4 }] },
    { name: 'raw sharp', turns: [{ perSecond: 100, p50Ms: 3 }] },
    { name: 'no server', turns: [{ perSecond: 400 }] },
  ],
};

/** With another aim than the one above. */
function withAim(changed: Partial<Contest['aims'][number]>): Contest {
  return { ...contest, aims: contest.aims.map((aim) => ({ ...aim, ...changed })) };
}

function report(of: Contest): string {
  return formatComparison(
    [of],
    [['avatars', 'nginx', 'needs nginx']],
    ['stampede'],
    'npm run bench',
  );
}

describe('the report', () => {
  test('says whether an aim was reached', () => {
    expect(report(contest)).toContain(
      '| avatars: Darkroom / raw sharp | at least 0.95 | 0.95 (0.95 to 0.95) | reached |  |',
    );
    expect(report(withAim({ atLeast: 0.96 }))).toContain('| missed |');
  });

  test('an aim that was not measured is not reached', () => {
    const unmeasured = withAim({ to: 'IPX' });
    expect(judgeAims([unmeasured])).toMatchObject([{ ratio: undefined, isReached: false }]);
    expect(report(unmeasured)).toContain('| – | not measured |');
  });

  test('names what is missing', () => {
    const text = report(contest);
    expect(text).toContain('Not measured in this run: stampede.');
    expect(text).toContain('| avatars | nginx | needs nginx |');
    expect(text).toContain('| no server | 400 (0 %) | – | 0.24 (0.24 to 0.24) |');
  });
});

describe('a contest', () => {
  /** Whom it is about, in the order of what becomes of them. */
  function setUp() {
    const calls: string[] = [];
    const absences: Absence[] = [];
    const stage = {
      ...{ rounds: 2, turnMs: 1, absences, isLikenessWanted: false },
      originals: () => Promise.reject(new Error('There are none.')),
      generator: {
        run: async ({ paths }: { readonly paths: readonly string[] }) => {
          calls.push(...paths);
          const response = { startedMs: 0, totalMs: 1, isHit: false, bytes: 1 };
          const status = paths.includes('B2') && calls.includes('it fails') ? 500 : 200;
          const responses = [{ ...response, status, retryAfterSeconds: undefined }];
          return { responses, seconds: 0.5, latenessMs: [] };
        },
      },
    };
    const contestants = ['A', 'B', 'C'].map((name) => ({
      name,
      start: async () => ({
        origin: `http://${name}`,
        pid: undefined,
        stop: async () => calls.push(`${name} leaves`),
      }),
    }));
    const rules = {
      ...{ contest: 'all', folder: '' },
      tryOut: async ({ name }: { readonly name: string }) => {
        if (name === 'C') throw new Error('sends another\nsize');
      },
      loadOf: ({ name }: { readonly name: string }, round: number) => ({
        clients: 1,
        paths: [`${name}${round}`],
      }),
    };
    return { calls, absences, hold: () => compete(stage, contestants, rules) };
  }

  test('has those that pass take turns, does not count practice, and sees all of them off', async () => {
    const { calls, absences, hold } = setUp();
    const entries = await hold();
    const turns = ['A0', 'B0', 'A1', 'B1', 'A2', 'B2'];
    expect(calls).toEqual(['C leaves', ...turns, 'A leaves', 'B leaves']);
    expect(absences).toEqual([['all', 'C', 'sends another size']]);
    expect(entries.map(({ name, turns: own }) => [name, own.length])).toEqual([
      ['A', 2],
      ['B', 2],
    ]);
    expect(entries[0]?.turns[0]).toMatchObject({ perSecond: 2, p50Ms: 1, responses: 1 });
  });

  test('ends where a response is none, and sees all of them off', async () => {
    const { calls, hold } = setUp();
    calls.push('it fails');
    await expect(hold()).rejects.toThrow('B responds with 500.');
    expect(calls.slice(-2)).toEqual(['A leaves', 'B leaves']);
  });
});
