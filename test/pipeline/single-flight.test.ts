import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type FlightControls, SingleFlight } from '../../src/pipeline/single-flight.ts';
import { type Deferred, defer, settle } from '../support/deferred.ts';
import { collectGarbage } from '../support/processes/garbage.ts';
import { atScale } from '../support/test-scale.ts';
import { expectNoUnhandledRejections } from '../support/unhandled-rejections.ts';
import {
  listenersOf,
  type Moment,
  messageOf,
  type UseKind,
  WatchedFlights,
  type WatchedUser,
  type WatchedWork,
} from './watched-flights.ts';

expectNoUnhandledRejections();

interface UserPlan {
  readonly key: string;
  readonly kind: UseKind;
  /** Turns before it comes, and before it leaves, if it does. */
  readonly comesAfter: number;
  readonly leavesAfter: number | undefined;
}

interface WorkPlan {
  readonly how: 'value' | 'failure' | 'cannot begin';
  /** Turns before it ends. */
  readonly endsAfter: number;
  /** It begins by joining the work of the next key, and ends after it. */
  readonly needsNext: boolean;
  /** A user wants it anew in the moment it is aborted. */
  readonly isWantedAgain: boolean;
}

const keys = ['a', 'b', 'c'];
const turns = fc.nat(12);
const userPlan: fc.Arbitrary<UserPlan> = fc.record({
  key: fc.constantFrom(...keys),
  kind: fc.oneof(
    fc.constantFrom<UseKind[]>('plain', 'lingering', 'breaking', 'refusing', 'leaving'),
    fc.constantFrom<UseKind[]>('plain', 'nesting same'),
    fc.constantFrom(...keys).map((nests): UseKind => ({ nests })),
  ),
  comesAfter: turns,
  leavesAfter: fc.option(turns, { nil: undefined }),
});
const workPlan: fc.Arbitrary<WorkPlan> = fc.record({
  how: fc.constantFrom<WorkPlan['how'][]>('value', 'value', 'failure', 'failure', 'cannot begin'),
  endsAfter: turns,
  needsNext: fc.boolean(),
  isWantedAgain: fc.boolean(),
});
/** Of the works without a plan. */
const easyWork: WorkPlan = {
  how: 'value',
  endsAfter: 0,
  needsNext: false,
  isWantedAgain: false,
};

/**
 * Some turns of the promise queue. Between two tasks of the scheduler many promises have theirs, and
 * it is within those turns that a wake-up would be lost.
 */
async function take(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await undefined;
}

/** Plays all plans, in an order of the scheduler's choice. */
async function play(
  scheduler: fc.Scheduler,
  users: readonly UserPlan[],
  works: readonly WorkPlan[],
): Promise<WatchedFlights> {
  const real = new WatchedFlights();
  const planned = [...works];
  const turn = async (what: string, after: number): Promise<void> => {
    await scheduler.schedule(Promise.resolve(), what);
    await take(after);
  };
  const begun = (work: WatchedWork): void => {
    const plan = planned.shift() ?? easyWork;
    if (plan.how === 'cannot begin') throw new Error('cannot begin');
    void finish(work, plan);
  };
  const finish = async (work: WatchedWork, plan: WorkPlan): Promise<void> => {
    const { key, signal, promise, end } = work;
    // All may refuse it, and then its failure is for no user.
    promise.catch(() => undefined);
    const next = plan.needsNext ? keys[keys.indexOf(key) + 1] : undefined;
    const needed = next === undefined ? undefined : real.join(next, 'plain', { signal, begun });
    if (plan.isWantedAgain) {
      signal.addEventListener('abort', () => real.join(key, 'plain', { begun }), { once: true });
    }
    await needed?.work?.promise.catch(() => undefined);
    await turn(`work ${work.id} of ${key} ends`, plan.endsAfter);
    end(plan.how === 'failure' ? 'failure' : 'value');
  };
  for (const [id, { key, kind, comesAfter, leavesAfter }] of users.entries()) {
    void turn(`${id} comes`, comesAfter).then(async () => {
      const user = real.join(key, kind, { begun });
      void turn(`hold of ${id} ends`, 0).then(() => user.hold.resolve());
      if (leavesAfter === undefined) return;
      await turn(`${id} leaves`, leavesAfter);
      user.leave();
    });
  }
  while (scheduler.count() > 0) {
    // `waitIdle` and `waitFor` would let 50 turns pass after each task: nothing would ever collide.
    await scheduler.waitAll();
    await settle();
  }
  return real;
}

/** What a user must have come to, if it stayed. */
function dueOf({ id, kind, work, inner }: WatchedUser): string | undefined {
  if (work === undefined) return 'cannot begin';
  if (kind === 'refusing') return `refused ${id}`;
  if (work.ending === 'failure') return `failure ${work.id}`;
  if (kind === 'breaking') return `broken ${id}`;
  return inner === undefined ? `value ${work.id}` : inner.outcomes[0];
}

function check(user: WatchedUser): void {
  const { signal, outcomes, isUnserved } = user;
  const due = dueOf(user);
  const reason = signal.aborted ? messageOf(signal.reason) : undefined;
  expect(outcomes).toHaveLength(1);
  // A user who left in the turns between its being served and its being told may have come to either.
  if (isUnserved) expect(outcomes).toEqual([reason]);
  else expect([due, reason]).toContain(outcomes[0]);
  expect(listenersOf(user)).toBe(0);
}

test('flights keep their promises in every interleaving', async () => {
  const moments = new Set<Moment>();
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(userPlan, { minLength: 1, maxLength: 12, size: 'max' }),
      fc.array(workPlan, { maxLength: 8, size: 'max' }),
      async (scheduler, users, works) => {
        const real = await play(scheduler, users, works);
        expect(real.faults).toEqual([]);
        expect(real.flights.size).toBe(0);
        for (const user of real.users) {
          check(user);
          if (user.inner !== undefined) check(user.inner);
        }
        for (const { signal } of real.works) expect(signal.aborted).toBe(true);
        for (const moment of real.moments) moments.add(moment);
      },
    ),
    { numRuns: atScale(300, 2_000) },
  );
  expect([...moments].sort()).toEqual([
    'begun anew after failure',
    'begun anew after nothing',
    'begun anew after value',
    'joined what had ended',
    'joined when all had left',
    'left between being served and being told',
  ]);
});

/** A flight whose work is a promise in our hands, with everything that happens to it counted. */
function createFlights(isJoinable?: (work: Promise<string>) => boolean) {
  const flights = new SingleFlight<Promise<string>>(isJoinable);
  const works: ({ readonly work: Deferred<string> } & FlightControls)[] = [];
  const join = (key: string, signal = new AbortController().signal) =>
    flights.run(
      key,
      signal,
      (controls) => {
        const work = defer<string>();
        works.push({ work, ...controls });
        return work.promise;
      },
      (work, isJoined) => work.then((value) => ({ value, isJoined })),
    );
  const workAt = (index: number) => {
    const found = works[index];
    if (found === undefined) throw new Error(`work ${index} was not begun`);
    return found;
  };
  return { flights, works, join, workAt };
}

describe('flights', () => {
  test('a user who has left before joining begins nothing', async () => {
    const { join, works } = createFlights();
    await expect(join('a', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(works).toHaveLength(0);
  });

  test('a user who leaves while the work begins leaves the work and a clean signal behind', async () => {
    const client = new AbortController();
    const flights = new SingleFlight<Promise<string>>();
    const work = defer<string>();
    let shared: AbortSignal | undefined;
    const gone = flights.run(
      'a',
      client.signal,
      ({ signal }) => {
        shared = signal;
        client.abort(new Error('gone'));
        return work.promise;
      },
      (promise) => promise,
    );
    await expect(gone).rejects.toThrow('gone');
    expect(shared?.aborted).toBe(true);
    expect(getEventListeners(client.signal, 'abort')).toEqual([]);
    work.reject(new Error('for no user')); // and no one has to catch it
    await settle();
  });

  test('a work that is out of date is joined no more, and serves those who have joined it', async () => {
    const outdated = new Set<Promise<string>>();
    const { join, works, workAt } = createFlights((work) => !outdated.has(work));
    const client = new AbortController();
    const early = [join('a'), join('a', client.signal), join('b')];
    outdated.add(workAt(0).work.promise);
    const late = join('a');
    expect(works).toHaveLength(3);
    client.abort(new Error('gone'));
    await expect(early[1]).rejects.toThrow('gone');
    expect(workAt(0).signal.aborted).toBe(false);
    workAt(0).work.resolve('old');
    expect(await early[0]).toEqual({ value: 'old', isJoined: false });
    expect(workAt(0).signal.aborted).toBe(true);
    // Its end does not take the place of the one that came after it.
    const latest = join('a');
    workAt(2).work.resolve('new');
    expect(await late).toEqual({ value: 'new', isJoined: false });
    expect(await latest).toEqual({ value: 'new', isJoined: true });
    workAt(1).work.resolve('other');
    expect(await early[2]).toEqual({ value: 'other', isJoined: false });
    expect(works).toHaveLength(3);
  });

  test('what is worth keeping keeps the flight, though all users have left', async () => {
    const { flights, join, works, workAt } = createFlights();
    const client = new AbortController();
    const gone = join('a', client.signal);
    const kept = defer<string>();
    workAt(0).keep(kept.promise);
    client.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    expect(workAt(0).signal.aborted).toBe(false);

    const next = join('a');
    expect(works).toHaveLength(1);
    workAt(0).work.resolve('one');
    expect(await next).toEqual({ value: 'one', isJoined: true });
    expect(workAt(0).signal.aborted).toBe(false);

    kept.reject(new Error('failed in the end'));
    await expect.poll(() => flights.size).toBe(0);
    expect(workAt(0).signal.aborted).toBe(true);
    workAt(0).keep(Promise.resolve()); // too late: a new flight is not held by it
    join('a').catch(() => undefined);
    expect(works).toHaveLength(2);
  });

  test('forget a user who has left, though the work still takes its time', async () => {
    const { join, workAt } = createFlights();
    const stayed = join('a');
    const leave = (): WeakRef<object> => {
      const client = new AbortController();
      const luggage = { any: 'thing' };
      const wait = async () => ({ value: await join('a', client.signal), luggage });
      wait().catch(() => undefined);
      client.abort(luggage); // as the stack of a real reason holds the response it came from
      return new WeakRef(luggage);
    };
    const left = Array.from({ length: 100 }, leave);
    await settle();
    collectGarbage();
    // The engine itself was seen to hold one of them; what is not forgotten would hold all.
    expect(left.filter((luggage) => luggage.deref() !== undefined).length).toBeLessThan(10);
    workAt(0).work.resolve('value');
    expect(await stayed).toEqual({ value: 'value', isJoined: false });
  });
});
