/**
 * Waiters by promise. `then` is called once for all waiters, since a promise keeps the callbacks of clients that left
 * until it settles (12 kB each, measured).
 */
const waitersOf = new WeakMap<Promise<unknown>, Set<() => void>>();

/** Waits for a promise until a signal aborts, and then forgets the waiter immediately. @throws `signal.reason` */
export function unlessAborted<Result>(
  promise: Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const waiters = waitersOf.get(promise) ?? gatherWaiters(promise);
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      waiters.delete(onSettled);
      reject(signal.reason);
    };
    const onSettled = (): void => {
      signal.removeEventListener('abort', onAbort);
      promise.then(resolve, reject);
    };
    if (signal.aborted) return onAbort();
    waiters.add(onSettled);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

function gatherWaiters(promise: Promise<unknown>): Set<() => void> {
  const waiters = new Set<() => void>();
  const settle = (): void => {
    waitersOf.delete(promise); // later waiters must not wait for a settled promise
    for (const onSettled of waiters) onSettled();
  };
  waitersOf.set(promise, waiters);
  promise.then(settle, settle);
  return waiters;
}

/** Interval of a countdown's steps, in milliseconds. */
const STEP_MS = 250;

/** Delay of a timer after which the process counts as stopped, in milliseconds; busy event loops delay timers less. */
const STANDSTILL_MS = 1_000;

/**
 * Deadline that does not count time in which the process was stopped, by SIGSTOP or in a paused container. Otherwise
 * the timer would fire before a result that has arrived is read.
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

  /** Remaining time at the beginning of the current step, in milliseconds. */
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
      const wasStopped = elapsedMs - stepMs > STANDSTILL_MS;
      if (!wasStopped) this.#leftMs -= Math.max(elapsedMs, stepMs);
      if (this.#leftMs > 0) this.#startStep();
      else this.#onEnd();
    }, stepMs);
  }
}

/**
 * Runs work under its own signal, which aborts with the outer signal or after a timeout.
 *
 * @param onTimeout creates the error to throw after the timeout
 * @param work may restart the timeout, with another length
 */
export async function withDeadline<Result>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  onTimeout: () => Error,
  work: (within: AbortSignal, restart: (timeoutMs: number) => void) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  let reject: (reason: unknown) => void = () => undefined;
  const abort = (reason: unknown): void => {
    controller.abort(reason);
    reject(reason);
  };
  const follow = (): void => abort(signal?.reason);
  signal?.addEventListener('abort', follow, { once: true });
  const expire = (): void => abort(onTimeout());
  let countdown = new Countdown(timeoutMs, expire);
  const restart = (nextTimeoutMs: number): void => {
    countdown.stop();
    countdown = new Countdown(nextTimeoutMs, expire);
  };
  try {
    return await new Promise<Result>((resolve, onAbort) => {
      reject = onAbort;
      work(controller.signal, restart).then(resolve, onAbort);
    });
  } finally {
    countdown.stop();
    signal?.removeEventListener('abort', follow);
  }
}

/** Creates an error that looks like the one of `AbortSignal.timeout`. */
export function timeoutError(message: string): Error {
  return Object.assign(new Error(message), { name: 'TimeoutError' });
}

export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}
