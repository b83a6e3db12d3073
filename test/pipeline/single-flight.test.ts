import { describe, expect, test } from 'vitest';
import { SingleFlight } from '../../src/pipeline/single-flight.ts';

interface Deferred<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: Error) => void;
}

function defer<Value>(): Deferred<Value> {
  let resolve: Deferred<Value>['resolve'] = () => undefined;
  let reject: Deferred<Value>['reject'] = () => undefined;
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** A flight whose work is a promise in our hands, with everything that happens to it counted. */
function createFlights() {
  const flights = new SingleFlight<Promise<string>>();
  const works: { readonly work: Deferred<string>; readonly signal: AbortSignal }[] = [];
  const join = (key: string, signal = new AbortController().signal) =>
    flights.run(
      key,
      signal,
      (shared) => {
        const work = defer<string>();
        works.push({ work, signal: shared });
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

describe('single flight', () => {
  test('begins one piece of work for everyone, and tells who joined', async () => {
    const { join, works, workAt } = createFlights();
    const users = [join('a'), join('a'), join('a'), join('b')];
    expect(works).toHaveLength(2);
    workAt(0).work.resolve('one');
    workAt(1).work.resolve('two');
    expect(await Promise.all(users)).toEqual([
      { value: 'one', isJoined: false },
      { value: 'one', isJoined: true },
      { value: 'one', isJoined: true },
      { value: 'two', isJoined: false },
    ]);
  });

  test('a leader who leaves harms no follower', async () => {
    const { join, works, workAt } = createFlights();
    const leader = new AbortController();
    const led = join('a', leader.signal);
    const followed = join('a');
    leader.abort(new Error('gone'));
    await expect(led).rejects.toThrow('gone');
    expect(workAt(0).signal.aborted).toBe(false);
    workAt(0).work.resolve('still there');
    expect(await followed).toEqual({ value: 'still there', isJoined: true });
    expect(works).toHaveLength(1);
  });

  test('the last one out aborts the work, and nothing is left behind', async () => {
    const { flights, join, workAt } = createFlights();
    const [one, two] = [new AbortController(), new AbortController()];
    const users = [join('a', one.signal), join('a', two.signal)];
    one.abort();
    await expect(users[0]).rejects.toThrow();
    expect(workAt(0).signal.aborted).toBe(false);
    two.abort();
    await expect(users[1]).rejects.toThrow();
    expect(workAt(0).signal.aborted).toBe(true);
    expect(flights.size).toBe(0);
  });

  test('whoever comes after an abandoned work begins anew', async () => {
    const { join, works, workAt } = createFlights();
    const first = new AbortController();
    const abandoned = join('a', first.signal);
    first.abort();
    await expect(abandoned).rejects.toThrow();
    const second = join('a');
    expect(works).toHaveLength(2);
    workAt(0).work.resolve('late');
    workAt(1).work.resolve('fresh');
    expect(await second).toEqual({ value: 'fresh', isJoined: false });
  });

  test('a failure is shared by those who waited and remembered for nobody', async () => {
    const { flights, join, workAt } = createFlights();
    const users = [join('a'), join('a')];
    workAt(0).work.reject(new Error('broken'));
    await expect(users[0]).rejects.toThrow('broken');
    await expect(users[1]).rejects.toThrow('broken');
    expect(flights.size).toBe(0);
    const next = join('a');
    workAt(1).work.resolve('mended');
    expect(await next).toEqual({ value: 'mended', isJoined: false });
  });

  test('a work that cannot begin leaves nothing behind', async () => {
    const { signal } = new AbortController();
    const flights = new SingleFlight<never>();
    const attempt = flights.run(
      'a',
      signal,
      () => {
        throw new Error('cannot begin');
      },
      () => Promise.resolve(),
    );
    await expect(attempt).rejects.toThrow('cannot begin');
    expect(flights.size).toBe(0);
  });

  test('a user who has left before joining begins nothing', async () => {
    const { join, works } = createFlights();
    await expect(join('a', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(works).toHaveLength(0);
  });
});
