import { getEventListeners } from 'node:events';
import { SingleFlight } from '../../src/pipeline/single-flight.ts';
import { type Deferred, defer } from '../support/deferred.ts';

/**
 * What a user does with the work: wait for it; wait for it and then for its hold to end; fail after it;
 * throw at once; leave in that very call; run the same key, or another one, as a user of both.
 */
export type UseKind =
  | 'plain'
  | 'lingering'
  | 'breaking'
  | 'refusing'
  | 'leaving'
  | 'nesting same'
  | { readonly nests: string };

/** One user, and what has become of it. */
export interface WatchedUser {
  readonly id: number;
  readonly key: string;
  readonly kind: UseKind;
  readonly signal: AbortSignal;
  readonly leave: () => void;
  /** What a lingering one waits for. */
  readonly hold: Deferred<void>;
  /** The user within it, where it nests one. */
  inner: WatchedUser | undefined;
  work: WatchedWork | undefined;
  isJoined: boolean | undefined;
  /** It had left before it got what it wanted. */
  isUnserved: boolean;
  /** It has got what it wanted of the work, an error included. */
  isServed: boolean;
  /** Each time that `run` settled: the value, or the message of the error. */
  readonly outcomes: string[];
}

/** One piece of work, and what has become of it. */
export interface WatchedWork {
  readonly id: number;
  readonly key: string;
  readonly signal: AbortSignal;
  readonly promise: Promise<string>;
  /** Ends it; only the first call counts. */
  readonly end: (how: WorkEnd) => void;
  readonly users: WatchedUser[];
  ending: WorkEnd | undefined;
}

export type WorkEnd = 'value' | 'failure';

export type Moment =
  | 'joined when all had left'
  | 'joined what had ended'
  | 'left between being served and being told'
  | `begun anew after ${WorkEnd | 'nothing'}`;

interface JoinOptions {
  /** Instead of a signal of its own. */
  readonly signal?: AbortSignal;
  readonly begun?: Begun;
}

/** Called with a work that is begun; what it throws `begin` throws. */
type Begun = (work: WatchedWork) => void;

/** Real flights, and a witness who writes down what must never be seen in the moment it is seen. */
export class WatchedFlights {
  readonly flights = new SingleFlight<WatchedWork>();
  /** Without those within others. */
  readonly users: WatchedUser[] = [];
  readonly works: WatchedWork[] = [];
  readonly faults: string[] = [];
  /** Rare moments that there have been; tests that never see them prove little. */
  readonly moments = new Set<Moment>();

  /** Runs a key as one user. */
  join(
    key: string,
    kind: UseKind,
    { signal, begun = () => undefined }: JoinOptions = {},
  ): WatchedUser {
    const client = new AbortController();
    const id = this.users.length;
    const leave = (): void => client.abort(new Error(`gone ${id}`));
    const user = createUser({ id, key, kind, signal: signal ?? client.signal, leave });
    this.users.push(user);
    this.#run(user, begun).catch(() => undefined);
    return user;
  }

  #run(user: WatchedUser, begun: Begun): Promise<string> {
    const { key, signal, outcomes } = user;
    const outcome = this.flights.run(
      key,
      signal,
      (controls) => this.#begin(key, controls.signal, begun),
      (work, isJoined) => this.#use(user, work, isJoined, begun),
    );
    outcome.then(
      (value) => outcomes.push(value),
      (error: unknown) => {
        outcomes.push(messageOf(error));
        const isLate = user.isServed && !user.isUnserved && error === signal.reason;
        if (isLate) this.moments.add('left between being served and being told');
      },
    );
    return outcome;
  }

  #begin(key: string, signal: AbortSignal, begun: Begun): WatchedWork {
    const before = this.works.findLast((work) => work.key === key);
    if (before !== undefined) this.moments.add(`begun anew after ${before.ending ?? 'nothing'}`);
    const { promise, resolve, reject } = defer<string>();
    const work: WatchedWork = {
      id: this.works.length,
      key,
      signal,
      promise,
      end: (how) => {
        work.ending ??= how;
        if (how === 'value') resolve(`value ${work.id}`);
        else reject(new Error(`failure ${work.id}`));
      },
      users: [],
      ending: undefined,
    };
    if (before?.signal.aborted === false) this.#fault(`${key} was begun twice at once`);
    const witness = (): void => {
      if (work.users.some(isThere)) this.#fault(`${work.id} was aborted under its users`);
    };
    signal.addEventListener('abort', witness, { once: true });
    this.works.push(work);
    try {
      begun(work);
    } catch (error) {
      this.works.pop();
      throw error;
    }
    return work;
  }

  #use(user: WatchedUser, work: WatchedWork, isJoined: boolean, begun: Begun): Promise<string> {
    if (work.key !== user.key) this.#fault(`${user.id} was given the work of another key`);
    if (work.signal.aborted) this.#fault(`${user.id} was given ${work.id}, which is over`);
    if (isJoined !== work.users.length > 0) this.#fault(`${user.id}: isJoined is ${isJoined}`);
    if (isJoined && !work.users.some(isThere)) this.moments.add('joined when all had left');
    if (isJoined && work.ending !== undefined) this.moments.add('joined what had ended');
    user.work = work;
    user.isJoined = isJoined;
    work.users.push(user);
    if (user.kind === 'leaving') user.leave();
    if (user.kind === 'refusing') {
      user.isServed = true;
      throw new Error(`refused ${user.id}`);
    }
    return this.#wait(user, work, begun).finally(() => {
      user.isServed = true;
      user.isUnserved = user.signal.aborted;
    });
  }

  async #wait(user: WatchedUser, work: WatchedWork, begun: Begun): Promise<string> {
    const { id, key, kind, signal, leave, hold } = user;
    if (kind === 'lingering') {
      await work.promise.catch(() => undefined);
      await hold.promise;
    }
    const value = await work.promise;
    if (kind === 'breaking') throw new Error(`broken ${id}`);
    if (kind !== 'nesting same' && typeof kind !== 'object') return value;
    signal.throwIfAborted();
    const nests = kind === 'nesting same' ? key : kind.nests;
    user.inner = createUser({ id, key: nests, kind: 'plain', signal, leave });
    return this.#run(user.inner, begun);
  }

  #fault(what: string): void {
    this.faults.push(what);
  }
}

function createUser(
  given: Pick<WatchedUser, 'id' | 'key' | 'kind' | 'signal' | 'leave'>,
): WatchedUser {
  return {
    ...given,
    hold: defer<void>(),
    inner: undefined,
    work: undefined,
    isJoined: undefined,
    isUnserved: false,
    isServed: false,
    outcomes: [],
  };
}

/** Listeners that a user's signal still has. */
export function listenersOf({ signal }: WatchedUser): number {
  return getEventListeners(signal, 'abort').length;
}

/** What an error says; of anything else, that it is none. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : `no error: ${String(error)}`;
}

function isThere({ isServed, signal }: WatchedUser): boolean {
  return !isServed && !signal.aborted;
}
