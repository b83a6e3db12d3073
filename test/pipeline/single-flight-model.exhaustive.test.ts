import fc from 'fast-check';
import { expect, test } from 'vitest';
import { settle } from '../support/deferred.ts';
import { expectNoUnhandledRejections } from '../support/unhandled-rejections.ts';
import { listenersOf, type UseKind, WatchedFlights, type WatchedUser } from './watched-flights.ts';

expectNoUnhandledRejections();

type Kind = Exclude<UseKind, object>;

interface ModelWork {
  readonly key: string;
  state: 'pending' | 'value' | 'failure';
  users: number;
  isOver: boolean;
}

interface ModelUser {
  readonly key: string;
  readonly kind: Kind;
  readonly work: number | undefined;
  readonly isJoined: boolean | undefined;
  /** The user within it, where it nests one. */
  inner: ModelUser | undefined;
  isGone: boolean;
  isHoldOver: boolean;
  outcome: string | undefined;
}

/**
 * What single flight is, without a promise: calls take effect at once; what follows from them does
 * at the end of the tick. Whoever leaves is there until then, so that who comes in the same tick
 * finds the work still running.
 */
class Model {
  readonly works: ModelWork[] = [];
  /** Without those within others. */
  readonly users: ModelUser[] = [];
  readonly running = new Map<string, number>();

  join(key: string, kind: Kind, how: 'well' | 'badly' | 'gone'): void {
    const id = this.users.length;
    const user = { key, kind, inner: undefined, isHoldOver: false };
    const nothing = { work: undefined, isJoined: undefined };
    if (how === 'gone') {
      this.users.push({ ...user, ...nothing, isGone: true, outcome: `gone ${id}` });
    } else if (how === 'badly' && !this.running.has(key)) {
      this.users.push({ ...user, ...nothing, isGone: false, outcome: 'cannot begin' });
    } else {
      const joined = this.#join(key, kind);
      this.users.push(joined);
      if (kind === 'leaving') joined.isGone = true;
      if (kind === 'refusing') this.#finish(joined, `refused ${id}`);
    }
  }

  #join(key: string, kind: Kind): ModelUser {
    const found = this.running.get(key);
    const work = found ?? this.works.length;
    if (found === undefined) {
      this.works.push({ key, state: 'pending', users: 0, isOver: false });
      this.running.set(key, work);
    }
    const isJoined = found !== undefined;
    const common = { inner: undefined, isGone: false, isHoldOver: false, outcome: undefined };
    const user = { key, kind, work, isJoined, ...common };
    this.#workOf(user).users += 1;
    return user;
  }

  /** Until nothing follows from anything any more. */
  tick(): void {
    const goOn = (user: ModelUser | undefined, outer: ModelUser, id: number): boolean => {
      if (user === undefined || user.outcome !== undefined) return false;
      const outcome = outer.isGone ? `gone ${id}` : this.#outcomeOf(user, id);
      if (outcome !== undefined) this.#finish(user, outcome);
      return outcome !== undefined;
    };
    let hasChanged = true;
    while (hasChanged) {
      hasChanged = false;
      for (const [id, user] of this.users.entries()) {
        if (goOn(user, user, id)) hasChanged = true;
        if (goOn(user.inner, user, id)) hasChanged = true;
      }
    }
  }

  #outcomeOf(user: ModelUser, id: number): string | undefined {
    const { state } = this.#workOf(user);
    if (state === 'pending' || (user.kind === 'lingering' && !user.isHoldOver)) return undefined;
    if (state === 'failure') return `failure ${user.work}`;
    if (user.kind === 'breaking') return `broken ${id}`;
    if (user.kind !== 'nesting same') return `value ${user.work}`;
    user.inner ??= this.#join(user.key, 'plain');
    return user.inner.outcome;
  }

  #finish(user: ModelUser, outcome: string): void {
    user.outcome = outcome;
    const work = this.#workOf(user);
    work.users -= 1;
    if (work.users > 0) return;
    work.isOver = true;
    this.running.delete(work.key);
  }

  #workOf(user: Pick<ModelUser, 'work'>): ModelWork {
    const work = user.work === undefined ? undefined : this.works[user.work];
    if (work === undefined) throw new Error('this user has no work');
    return work;
  }
}

/** One call, on the model and on the real thing. */
interface Call {
  readonly apply: (model: Model, real: WatchedFlights) => void;
  readonly toString: () => string;
}

const call = (text: string, apply: Call['apply']): Call => ({ apply, toString: () => text });

const at = <Item>(items: readonly Item[], index: number): Item => {
  const item = items[index % items.length];
  if (item === undefined) throw new Error('there is none');
  return item;
};

const join = (key: string, kind: Kind): Call =>
  call(`join(${key}, ${kind})`, (model, real) => {
    model.join(key, kind, 'well');
    real.join(key, kind);
  });

const joinBadly = (key: string): Call =>
  call(`joinBadly(${key})`, (model, real) => {
    model.join(key, 'plain', 'badly');
    const begun = (): never => {
      throw new Error('cannot begin');
    };
    real.join(key, 'plain', { begun });
  });

const joinGone = (key: string): Call =>
  call(`joinGone(${key})`, (model, real) => {
    model.join(key, 'plain', 'gone');
    const signal = AbortSignal.abort(new Error(`gone ${real.users.length}`));
    real.join(key, 'plain', { signal });
  });

const leave = (index: number): Call =>
  call(`leave(${index})`, (model, real) => {
    if (model.users.length === 0) return;
    at(model.users, index).isGone = true;
    at(real.users, index).leave();
  });

const open = (index: number): Call =>
  call(`open(${index})`, (model, real) => {
    if (model.users.length === 0) return;
    at(model.users, index).isHoldOver = true;
    at(real.users, index).hold.resolve();
  });

const end = (index: number, how: 'value' | 'failure'): Call =>
  call(`end(${index}, ${how})`, (model, real) => {
    if (model.works.length === 0) return;
    const work = at(model.works, index);
    // A failure of a work that no user has ever waited for is for its beginner to catch.
    const isWaitedFor = at(real.works, index).users.some(({ kind }) => kind !== 'refusing');
    if (work.state !== 'pending' || (how === 'failure' && !isWaitedFor)) return;
    work.state = how;
    at(real.works, index).end(how);
  });

const key = fc.constantFrom('a', 'b');
const kind = fc.constantFrom<Kind[]>(
  'plain',
  'lingering',
  'breaking',
  'refusing',
  'leaving',
  'nesting same',
);
const how = fc.constantFrom('value' as const, 'failure' as const);
const anyCall = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(key, kind).map((args) => join(...args)) },
  { weight: 1, arbitrary: key.map(joinBadly) },
  { weight: 1, arbitrary: key.map(joinGone) },
  { weight: 3, arbitrary: fc.nat(20).map(leave) },
  { weight: 2, arbitrary: fc.nat(20).map(open) },
  { weight: 2, arbitrary: fc.tuple(fc.nat(20), how).map((args) => end(...args)) },
);
// No `fc.commands`: it gives promises a turn between any two calls, and what calls of one tick do to
// each other is the point here.
const ticks = fc.array(fc.array(anyCall, { maxLength: 6 }), { maxLength: 12, size: 'max' });

async function endTick(model: Model, real: WatchedFlights): Promise<void> {
  model.tick();
  await settle();
  expect(real.faults).toEqual([]);
  expect(real.flights.size).toBe(model.running.size);
  expect(real.users.map(whatHappened)).toEqual(model.users.map(whatShouldHappen));
  expect(real.works.map(({ key, signal }) => ({ key, isOver: signal.aborted }))).toEqual(
    model.works.map(({ key, isOver }) => ({ key, isOver })),
  );
  expect(real.users.map(listenersOf)).toEqual(model.users.map(expectedListenersOf));
}

interface Happened {
  readonly work: number | undefined;
  readonly isJoined: boolean | undefined;
  readonly outcomes: readonly string[];
  readonly inner: Happened | undefined;
}

function whatHappened({ work, isJoined, outcomes, inner }: WatchedUser): Happened {
  return { work: work?.id, isJoined, outcomes, inner: inner && whatHappened(inner) };
}

function whatShouldHappen({ work, isJoined, outcome, inner }: ModelUser): Happened {
  const outcomes = outcome === undefined ? [] : [outcome];
  return { work, isJoined, outcomes, inner: inner && whatShouldHappen(inner) };
}

/** A user and the one within it listen to one signal. */
function expectedListenersOf(user: ModelUser): number {
  const both = [user, user.inner].filter((one) => one !== undefined);
  return both.filter(({ outcome }) => outcome === undefined).length;
}

test('does in every order of calls what its model does', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(ticks, async (plan) => {
      const model = new Model();
      const real = new WatchedFlights();
      for (const calls of plan) {
        for (const { apply } of calls) {
          apply(model, real);
          expect(real.flights.size).toBe(model.running.size);
        }
        await endTick(model, real);
      }

      // Everyone goes home; then nothing is left.
      for (const index of model.users.keys()) leave(index).apply(model, real);
      await endTick(model, real);
      expect(real.flights.size).toBe(0);
      expect(real.users.filter(({ outcomes }) => outcomes.length !== 1)).toEqual([]);
      expect(real.works.filter(({ signal }) => !signal.aborted)).toEqual([]);
      for (const { outcome = '' } of model.users) seen.add(outcome.replace(/ \d+$/, ''));
    }),
    { numRuns: 500 },
  );
  // Or the runs would have proved little.
  const all = ['broken', 'cannot begin', 'failure', 'gone', 'refused', 'value'];
  expect([...seen].sort()).toEqual(all);
});
