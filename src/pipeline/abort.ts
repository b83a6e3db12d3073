/**
 * Waits for a promise, but no longer than until a signal aborts; what the promise comes to after
 * that is dropped.
 *
 * @throws what the promise is rejected with, or `signal.reason`
 */
export function unlessAborted<Result>(
  promise: Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/**
 * Runs work under a signal of its own, which aborts with the outer one or after a time.
 *
 * @param timeoutMs time for the work, in milliseconds
 * @param onTimeout makes the reason it aborts with then
 * @throws what the work throws, the outer signal's reason, or what `onTimeout` made
 */
export async function withDeadline<Result>(
  timeoutMs: number,
  signal: AbortSignal,
  onTimeout: () => Error,
  work: (within: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const follow = (): void => controller.abort(signal.reason);
  signal.addEventListener('abort', follow, { once: true });
  const timer = setTimeout(() => controller.abort(onTimeout()), timeoutMs);
  try {
    return await unlessAborted(work(controller.signal), controller.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', follow);
  }
}
