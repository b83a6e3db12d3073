/**
 * Waiters of each promise. A promise keeps every callback of its `then` until it settles: those of clients
 * that come and go while one of them stays would pile up there, with 12 kB each (measured). So its
 * `then` is called once for all of them, and from a set each can be removed.
 */
const waitersOf = new WeakMap<Promise<unknown>, Set<() => void>>();

/**
 * Waits for a promise, but no longer than until a signal aborts; what the promise comes to after
 * that is dropped. A waiter that has left is forgotten at once, however long the promise still takes.
 *
 * @throws what the promise is rejected with, or `signal.reason`
 */
export function unlessAborted<Result>(
  promise: Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const waiters = waitersOf.get(promise) ?? gatherWaiters(promise);
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      waiters.delete(stay);
      reject(signal.reason);
    };
    const stay = (): void => {
      signal.removeEventListener('abort', leave);
      promise.then(resolve, reject);
    };
    if (signal.aborted) return leave();
    waiters.add(stay);
    signal.addEventListener('abort', leave, { once: true });
  });
}

function gatherWaiters(promise: Promise<unknown>): Set<() => void> {
  const waiters = new Set<() => void>();
  const settle = (): void => {
    waitersOf.delete(promise); // a waiter that comes now must not wait for what is over
    for (const stay of waiters) stay();
  };
  waitersOf.set(promise, waiters);
  promise.then(settle, settle);
  return waiters;
}

/** Interval in which a countdown checks that the process runs, in milliseconds. */
const STEP_MS = 250;

/** Delay of a timer above which the process stood still, in milliseconds. A busy event loop causes shorter ones. */
const STANDSTILL_MS = 1_000;

/**
 * Deadline that does not count the time in which this process stood still, after SIGSTOP or in a paused container: the
 * clock goes on meanwhile, and the timer would fire before a result that has arrived is received.
 */
export class Countdown {
  readonly #onEnd: () => void;
  #leftMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number, onEnd: () => void) {
    this.#leftMs = timeoutMs;
    this.#onEnd = onEnd;
    this.#startStep();
  }

  /** Remaining time at the beginning of the present step, in milliseconds. */
  get leftMs(): number {
    return this.#leftMs;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #startStep(): void {
    const sinceMs = performance.now();
    const stepMs = Math.min(this.#leftMs, STEP_MS);
    this.#timer = setTimeout(() => {
      const elapsedMs = performance.now() - sinceMs;
      const stoodStill = elapsedMs - stepMs > STANDSTILL_MS;
      if (!stoodStill) this.#leftMs -= Math.max(elapsedMs, stepMs);
      if (this.#leftMs > 0) this.#startStep();
      else this.#onEnd();
    }, stepMs);
  }
}

/**
 * Runs work under a signal of its own, which aborts with the outer one or after a time.
 *
 * @param timeoutMs time for the work, in milliseconds
 * @param signal the outer one, if there is one
 * @param onTimeout makes the reason it aborts with then
 * @param work may begin the time anew, with another length
 * @throws what the work throws, the outer signal's reason, or what `onTimeout` made
 */
export async function withDeadline<Result>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  onTimeout: () => Error,
  work: (within: AbortSignal, restart: (timeoutMs: number) => void) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const follow = (): void => controller.abort(signal?.reason);
  signal?.addEventListener('abort', follow, { once: true });
  const expire = (): void => controller.abort(onTimeout());
  let countdown = new Countdown(timeoutMs, expire);
  const restart = (nextTimeoutMs: number): void => {
    countdown.stop();
    countdown = new Countdown(nextTimeoutMs, expire);
  };
  try {
    return await unlessAborted(work(controller.signal, restart), controller.signal);
  } finally {
    countdown.stop();
    signal?.removeEventListener('abort', follow);
  }
}

/** Returns an error for work that has not ended in time, named like that of `AbortSignal.timeout`. */
export function timeoutError(message: string): Error {
  return Object.assign(new Error(message), { name: 'TimeoutError' });
}

/** Whether work has failed since it has not ended in time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}
